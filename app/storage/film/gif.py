"""An animated GIF, written as it goes on. It has 256 colours a frame and counts in hundredths of a second."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.storage.film.frame import Box, DeltaWriter

if TYPE_CHECKING:
    from PIL.Image import Image


class GifWriter(DeltaWriter):
    """A table of colours for every frame."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._has_header = False

    def close(self) -> None:
        """The last frame, and the end."""
        self.flush()
        self._file.write(b";")
        self._file.close()

    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """A frame with its own colours, behind the head where it is the first."""
        from PIL import GifImagePlugin, Image

        flat = image.quantize(255, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        if not self._has_header:
            self._has_header = True
            head, _colours = GifImagePlugin.getheader(flat.copy(), info={"loop": 0, "optimize": False})
            self._file.write(b"".join(head))
        data = GifImagePlugin.getdata(flat, offset=box[:2], duration=milliseconds, include_color_table=True)
        self._file.write(b"".join(data))
