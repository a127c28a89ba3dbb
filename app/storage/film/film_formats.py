"""The kinds of films there are, and the opening of one: beside its place first, then into it as a whole."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from resources.language import mark, tr

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


SIGNATURE = b"\x89PNG\r\n\x1a\n"


class ApngWriter(DeltaWriter):
    """How many frames there were, stands in the header: it is written there at the end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._frames = self._number = 0

    def close(self) -> None:
        """The last frame, and how many there were."""
        self.flush()
        self._chunk(b"IEND", b"")
        self._file.seek(len(SIGNATURE) + _CHUNK + _HEADER)
        self._chunk(b"acTL", struct.pack(">II", self._frames, 0))
        self._file.close()

    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """A frame's control, and its data: the first one's as every PNG has it."""
        left, top, right, bottom = box
        if not self._frames:
            self._file.write(SIGNATURE)
            self._chunk(b"IHDR", struct.pack(">IIBBBBB", *image.size, 8, 2, 0, 0, 0))
            self._chunk(b"acTL", struct.pack(">II", 0, 0))
        control = struct.pack(
            ">IIIIIHHBB", self._next(), right - left, bottom - top, left, top, min(milliseconds, 65_535), 1000, 0, 0
        )
        self._chunk(b"fcTL", control)
        for data in _idat_chunks(image):
            if self._frames:
                self._chunk(b"fdAT", struct.pack(">I", self._next()) + data)
            else:
                self._chunk(b"IDAT", data)
        self._frames += 1

    def _next(self) -> int:
        self._number += 1
        return self._number - 1

    def _chunk(self, kind: bytes, data: bytes) -> None:
        crc = zlib.crc32(kind + data)
        self._file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc))


_CHUNK, _HEADER = 12, 13
"""Bytes around a chunk's data, and of the header's data."""


def _idat_chunks(image: Image) -> Iterator[bytes]:
    """The IDAT chunks that Pillow makes of it."""
    out = BytesIO()
    image.save(out, "PNG", compress_level=6)
    data, place = out.getvalue(), len(SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        if data[place + 4 : place + 8] == b"IDAT":
            yield data[place + 8 : place + 8 + length]
        place += _CHUNK + length


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


FRAME_LIST_NAME = "frames.csv"


class PngFolderWriter:
    """`0001.png`, `0002.png` …"""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._lines = ["file,milliseconds"]

    def add(self, frame: Frame) -> None:
        """The next one, at once."""
        name = f"{len(self._lines):04}.png"
        frame.to_image().save(self._folder / name, "PNG")
        self._lines.append(f"{name},{frame.milliseconds}")

    def close(self) -> None:
        """The list."""
        (self._folder / FRAME_LIST_NAME).write_text("\n".join(self._lines) + "\n", encoding="utf-8", newline="\n")

    def discard(self) -> None:
        """Nothing is left of it."""
        shutil.rmtree(self._folder, ignore_errors=True)


FFMPEG, RATE = "ffmpeg", 25
"""Frames a second."""


def webm_unsupported_reason() -> str:
    """Why none can be made here; empty where one can."""
    return "" if shutil.which("ffmpeg") else tr("A WebM is made by ffmpeg, which was not found here.")


class WebmWriter:
    """Repeats each frame for as long as it is shown."""

    def __init__(self, path: Path) -> None:
        if why := webm_unsupported_reason():
            raise FilmError(why)
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._frames_written = self._due_milliseconds = 0

    def add(self, frame: Frame) -> None:
        """The next one, so many times as its time takes; no error adds up."""
        process = self._process or self._start(frame)
        assert process.stdin is not None, "it was started with a pipe"
        self._due_milliseconds += frame.milliseconds
        while self._frames_written * 1000 < self._due_milliseconds * RATE:
            try:
                process.stdin.write(frame.pixels)
            except BrokenPipeError:
                raise self._ffmpeg_error() from None
            self._frames_written += 1

    def close(self) -> None:
        """Wait for ffmpeg to write the end."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            if self._process.wait() != 0:
                raise self._ffmpeg_error()

    def discard(self) -> None:
        """Nothing is left of it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._path.unlink(missing_ok=True)

    def _start(self, frame: Frame) -> subprocess.Popen[bytes]:
        even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"
        command = [
            FFMPEG, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb0",
            "-s", f"{frame.width}x{frame.height}", "-r", str(RATE), "-i", "-", "-vf", even,
            "-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-b:v", "0", "-crf", "30", "-f", "webm", str(self._path),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self._process

    def _ffmpeg_error(self) -> FilmError:
        return FilmError(tr("ffmpeg could not make a WebM of this. Choose an animated PNG instead."))


APNG, GIF, WEBM, PNGS = "apng", "gif", "webm", "png"


class FilmFormat(NamedTuple):
    """One kind of film."""

    title: str
    """Marked: shown through `tr`."""
    create_writer: Callable[[Path], FilmWriter]


KINDS = {
    APNG: FilmFormat(mark("Animated picture (APNG)"), ApngWriter),
    GIF: FilmFormat(mark("Animated picture (GIF)"), GifWriter),
    WEBM: FilmFormat(mark("Film (WebM)"), WebmWriter),
    PNGS: FilmFormat(mark("A picture for every step (PNG)"), PngFolderWriter),
}
"""By the ending of the file; pictures for every step go into a folder of that name without its ending."""
ENDINGS = tuple(f".{kind}" for kind in KINDS)


class Film:
    """A film on its way to `path`: nothing is seen there before it is whole."""

    def __init__(self, path: Path) -> None:
        """Raises FilmError for an ending that stands for no film, or where its folder is there already; OSError."""
        kind = KINDS.get(path.suffix.lower().removeprefix("."))
        if kind is None:
            raise FilmError(tr("End the name of a film with {endings}.").format(endings=", ".join(ENDINGS)))
        self.path = path.with_suffix("") if kind is KINDS[PNGS] else path
        if kind is KINDS[PNGS] and self.path.exists():
            raise FilmError(tr("{folder} is there already. Choose another name.").format(folder=self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._part_path = self.path.with_name(f".{self.path.name}-part")
        self._remove_leftovers()
        self._writer = kind.create_writer(self._part_path)

    def add(self, frame: Frame) -> None:
        """The next frame. Raises OSError or FilmError."""
        self._writer.add(frame)

    def close(self) -> None:
        """It is whole: let it be seen. Raises OSError or FilmError."""
        self._writer.close()
        self._part_path.replace(self.path)

    def discard(self) -> None:
        """Leave nothing behind."""
        self._writer.discard()

    def _remove_leftovers(self) -> None:
        """What a film that was cut off has left."""
        if self._part_path.is_dir():
            shutil.rmtree(self._part_path)
        self._part_path.unlink(missing_ok=True)
