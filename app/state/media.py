"""Sounds and pictures that go with a prompt, as they are shown. Plain data, no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from app.state.worker_messages import ErrorReport
from core import medium_label, words
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.events import MediumRead, PromptToken

SOUND, PICTURE = "sound", "picture"
KINDS = (SOUND, PICTURE)
NAMES = {SOUND: mark("sound"), PICTURE: mark("picture")}
WAVEFORM_INTERVALS = 480
"""Stretches that a waveform is drawn from."""
MAX_THUMBNAIL_SIZE = 320
"""Pixels of a thumbnail's longer side, at most: enough for a card on a dense screen."""


FILE_SUFFIXES = {
    SOUND: (".wav", ".flac", ".ogg", ".oga", ".mp3", ".aiff", ".aif", ".au", ".caf"),
    PICTURE: (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"),
}
"""Of the names of files that are offered; what a file really is, the core says by what it holds."""
FILTERS = {SOUND: mark("Sounds ({endings})"), PICTURE: mark("Pictures ({endings})")}


def kind_by_name(path: str) -> str:
    """Sound or picture, as the file's name ends; empty for neither."""
    return next((kind for kind, endings in FILE_SUFFIXES.items() if path.lower().endswith(endings)), "")


def file_filter(kind: str) -> str:
    """What a dialog offers to open: `Sounds (*.wav *.flac)`."""
    return tr(FILTERS[kind]).format(endings=" ".join(f"*{ending}" for ending in FILE_SUFFIXES[kind]))


class BundledMedium(NamedTuple):
    """A file that ships with the program."""

    title: str
    path: str


class Thumbnail(NamedTuple):
    """A picture made small."""

    width: int
    height: int
    rgb: bytes
    """Three bytes a pixel, row by row from the top."""


class Medium(NamedTuple):
    """A file with a sound or a picture, as far as it is known."""

    path: str
    name: str
    """Of the file, without its folder."""
    kind: str = ""
    """sound or picture; empty while it is read, or where it cannot be."""
    seconds: float = 0.0
    rate: int = 0
    """Samples a second."""
    width: int = 0
    height: int = 0
    peaks: tuple[tuple[float, float], ...] = ()
    """Of a sound: lowest and highest sample of equal stretches, −1 to 1."""
    thumbnail: Thumbnail | None = None
    error: ErrorReport | None = None
    """Why it cannot be used; None where it can, or is still being read."""

    @property
    def is_read(self) -> bool:
        """Whether it has been read, well or not."""
        return bool(self.kind) or self.error is not None

    @property
    def facts(self) -> str:
        """`3.2 s · 16,000 samples a second`, `640 × 480`; empty while nothing is known."""
        if self.kind == SOUND:
            return tr("{seconds} · {rate:,} Hz").format(seconds=words.duration(self.seconds), rate=self.rate)
        if self.kind == PICTURE:
            return tr("{width:,} × {height:,} pixels").format(width=self.width, height=self.height)
        return ""

    @property
    def description(self) -> str:
        """What it is, for those who cannot see it: `sound hello.wav, 3.2 s · 16,000 Hz`."""
        kind = tr(NAMES[self.kind]) if self.kind else tr("file")
        told = self.error.cause if self.error is not None else self.facts or tr("reading…")
        return tr("{kind} {name}, {facts}").format(kind=kind, name=self.name, facts=told)


def medium_unsupported_reason(medium: Medium, accepted_kinds: Sequence[str], model: str) -> str:
    """Why a model that takes these kinds cannot have the file; empty where it can."""
    if not accepted_kinds:
        return tr("{model} reads text only: the file stays here, and is not sent.").format(model=model)
    if medium.kind and medium.kind not in accepted_kinds:
        refused = {
            SOUND: mark("{model} takes pictures, no sound: the file stays here, and is not sent."),
            PICTURE: mark("{model} takes sound, no pictures: the file stays here, and is not sent."),
        }
        return tr(refused[medium.kind]).format(model=model)
    return ""


def display_prompt(prompt: Sequence[PromptToken], media: Sequence[MediumRead]) -> tuple[PromptToken, ...]:
    """A prompt as it is drawn: the tokens that stand for a sound or a picture are one word, at the first of them."""
    if not media:
        return tuple(prompt)
    from core.events import PromptToken

    shown = list(prompt)
    for medium in media:
        if medium.place == "prompt":
            for place in range(medium.first, min(medium.last + 1, len(shown))):
                label = f"⟨{medium_label(medium)}⟩" if place == medium.first else ""
                shown[place] = PromptToken(shown[place].id, label)
    return tuple(shown)
