"""What all kinds of films have in common: a frame, what differs between two, and the box around that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, in pixels."""


class FilmError(Exception):
    """The film cannot be written; the message says why, and what can be done."""


class Frame(NamedTuple):
    """One picture of a film, and how long it is shown."""

    width: int
    height: int
    pixels: bytes
    """Four bytes a pixel (red, green, blue, nothing), row by row."""
    milliseconds: int

    def to_image(self) -> Image:
        """The same for Pillow."""
        from PIL import Image

        return Image.frombytes("RGB", (self.width, self.height), self.pixels, "raw", "RGBX")


class FilmWriter(Protocol):
    """Takes frames of one size, one after another; raises OSError or FilmError."""

    def add(self, frame: Frame) -> None:
        """The next one."""

    def close(self) -> None:
        """There are no more: the file is whole now."""

    def discard(self) -> None:
        """It is not wanted any more: whatever has been written goes."""


class DeltaWriter(ABC):
    """A file into which only what differs from the frame before is written; a frame that differs in nothing prolongs
    that one."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path, self._file = path, path.open("wb")
        self._last: Image | None = None
        self._pending: tuple[Image, Box, int] | None = None
        """What of a frame is to be written, where, and for how many milliseconds so far."""

    def add(self, frame: Frame) -> None:
        """The next one; it is written once it is known how long it stays."""
        image = frame.to_image()
        box = (0, 0, *image.size) if self._last is None else _difference_box(self._last, image)
        self._last = image
        if box is None and self._pending is not None:
            waiting, place, shown = self._pending
            self._pending = waiting, place, shown + frame.milliseconds
            return
        self.flush()
        place = box or (0, 0, 1, 1)
        self._pending = image.crop(place), place, frame.milliseconds

    def flush(self) -> None:
        """Write what waits."""
        if self._pending is not None:
            self.write(*self._pending)
            self._pending = None

    def discard(self) -> None:
        """Nothing is left of it."""
        with suppress(OSError):  # a full disk does not take the rest, which nobody wants
            self._file.close()
        self._path.unlink(missing_ok=True)

    @abstractmethod
    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """Put that part of a frame into the file."""


def _difference_box(before: Image, after: Image) -> Box | None:
    """Around what differs between two frames; None where nothing does."""
    from PIL import ImageChops

    return ImageChops.difference(before, after).getbbox()
