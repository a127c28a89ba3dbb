"""Audio and images of a prompt, as they are displayed. Plain data, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.state.worker_messages import ErrorReport
from decodescope.core import medium_label, words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import MediumRead, PromptToken

SOUND, PICTURE = "sound", "picture"
KINDS = (SOUND, PICTURE)
NAMES = {SOUND: mark("audio"), PICTURE: mark("image")}
WAVEFORM_INTERVALS = 480
"""Number of intervals of a waveform."""
MAX_THUMBNAIL_SIZE = 320
"""Largest size of a thumbnail in pixels: enough for a card on a high-density screen."""


FILE_SUFFIXES = {
    SOUND: (".wav", ".flac", ".ogg", ".oga", ".mp3", ".aiff", ".aif", ".au", ".caf"),
    PICTURE: (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"),
}
"""File name suffixes offered in file dialogs; the core detects a file's type from its content."""
FILTERS = {SOUND: mark("Audio ({endings})"), PICTURE: mark("Images ({endings})")}


def kind_by_name(path: str) -> str:
    """Return `sound` or `picture` according to the file name suffix; empty for neither."""
    return next((kind for kind, endings in FILE_SUFFIXES.items() if path.lower().endswith(endings)), "")


def file_filter(kind: str) -> str:
    """Return the filter for a file dialog: `Audio (*.wav *.flac)`."""
    return tr(FILTERS[kind]).format(endings=" ".join(f"*{ending}" for ending in FILE_SUFFIXES[kind]))


class BundledMedium(NamedTuple):
    """A media file shipped with the program."""

    title: str
    path: str


class Thumbnail(NamedTuple):
    """A downscaled image."""

    width: int
    height: int
    rgb: bytes
    """Three bytes per pixel, row by row from the top."""


class Medium(NamedTuple):
    """An audio or image file and what is known about it."""

    path: str
    name: str
    """File name without the folder."""
    kind: str = ""
    """`sound` or `picture`; empty while the file is read, or if it cannot be read."""
    seconds: float = 0.0
    rate: int = 0
    """Sampling rate in Hz."""
    width: int = 0
    height: int = 0
    peaks: tuple[tuple[float, float], ...] = ()
    """For audio: minimum and maximum sample of equal intervals, −1 to 1."""
    thumbnail: Thumbnail | None = None
    error: ErrorReport | None = None
    """Why it cannot be used; None if it can, or while it is read."""

    @property
    def is_read(self) -> bool:
        """Whether it has been read, successfully or not."""
        return bool(self.kind) or self.error is not None

    @property
    def facts(self) -> str:
        """`3.2 s · 16,000 Hz`, `640 × 480 pixels`; empty while nothing is known."""
        if self.kind == SOUND:
            return tr("{seconds} · {rate:,} Hz").format(seconds=words.duration(self.seconds), rate=self.rate)
        if self.kind == PICTURE:
            return tr("{width:,} × {height:,} pixels").format(width=self.width, height=self.height)
        return ""

    @property
    def description(self) -> str:
        """Description for screen readers: `audio hello.wav, 3.2 s · 16,000 Hz`."""
        kind = tr(NAMES[self.kind]) if self.kind else tr("file")
        facts = self.error.cause if self.error is not None else self.facts or tr("reading…")
        return tr("{kind} {name}, {facts}").format(kind=kind, name=self.name, facts=facts)


def medium_unsupported_reason(medium: Medium, accepted_kinds: Sequence[str], model: str) -> str:
    """Return why a model that accepts these kinds cannot use the file; empty if it can."""
    if not accepted_kinds:
        return tr("{model} accepts only text. The file is not sent.").format(model=model)
    if medium.kind and medium.kind not in accepted_kinds:
        refused = {
            SOUND: mark("{model} accepts images but no audio. The file is not sent."),
            PICTURE: mark("{model} accepts audio but no images. The file is not sent."),
        }
        return tr(refused[medium.kind]).format(model=model)
    return ""


def display_prompt(prompt: Sequence[PromptToken], media: Sequence[MediumRead]) -> tuple[PromptToken, ...]:
    """Return the prompt for display: all tokens of a medium become one label at the first of them."""
    if not media:
        return tuple(prompt)
    from decodescope.core.events import PromptToken

    shown = list(prompt)
    for medium in media:
        if medium.place == "prompt":
            for place in range(medium.first, min(medium.last + 1, len(shown))):
                label = f"⟨{medium_label(medium)}⟩" if place == medium.first else ""
                shown[place] = PromptToken(shown[place].id, label)
    return tuple(shown)
