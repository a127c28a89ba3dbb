"""A scripted engine with audio and image inputs; it reports the files that it receives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from decodescope import core
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest
from decodescope.core import Modalities
from decodescope.core.events import Event, MediumRead, PromptToken, RunStarted
from tests.ui.fake_engine import ScriptedEngine

GRID = 4
"""Patches in a row, and rows of them."""
FRAMES = 50
"""Positions of a sound, of four seconds."""


@dataclass
class MediaEngine(ScriptedEngine):
    """An engine with an image before or in the prompt, and audio in an encoder."""

    takes: Modalities = field(default_factory=lambda: Modalities(picture=True, max_count=None))
    inside: bool = False
    """Whether a picture has tokens of the prompt."""

    def load(self, request: LoadRequest) -> ModelInfo:
        """Load the same model with media inputs."""
        return super().load(request)._replace(modalities=self.takes)

    def _events(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        for event in super()._events(request, cancel):
            yield self._with_media(event, request) if isinstance(event, RunStarted) else event

    def _with_media(self, started: RunStarted, request: RunRequest) -> RunStarted:
        read = tuple(self._read(str(path), number) for number, path in enumerate(request.media))
        places = tuple(PromptToken(7, "<image>") for _ in range(GRID * GRID * len(read))) if self.inside else ()
        return replace(started, media=read, prompt=(*places, *started.prompt))

    def _read(self, path: str, number: int) -> MediumRead:
        about = core.media.inspect(path)
        if about.kind == "sound":
            return MediumRead(path, "sound", about.digest, "encoder", 0, FRAMES - 1, seconds=about.seconds, heard=4.0)
        first = number * GRID * GRID
        return MediumRead(
            path, "picture", about.digest, "prompt" if self.inside else "before", first, first + GRID * GRID - 1,
            GRID, GRID, about.width, about.height,
        )  # fmt: skip
