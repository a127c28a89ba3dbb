"""The film formats, and `Film`, which writes to a temporary file and renames it when complete."""

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

from decodescope.resources.language import join_names, mark, tr

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[int, int, int, int]
"""Left, top, right, bottom, in pixels."""


class FilmError(Exception):
    """The film cannot be written; the message gives cause and remedy."""


class Frame(NamedTuple):
    """One picture of a film and how long it is shown."""

    width: int
    height: int
    pixels: bytes
    """Four bytes per pixel (red, green, blue, unused), row by row."""
    milliseconds: int

    def to_image(self) -> Image:
        """Return the frame as a Pillow image."""
        from PIL import Image

        return Image.frombytes("RGB", (self.width, self.height), self.pixels, "raw", "RGBX")


class FilmWriter(Protocol):
    """Accepts frames of one size one after another; raises OSError or FilmError."""

    def add(self, frame: Frame) -> None:
        """Write the next frame."""

    def close(self) -> None:
        """Finish the file."""

    def discard(self) -> None:
        """Cancel: delete what has been written."""


class DeltaWriter(ABC):
    """A writer that stores only the region that differs from the previous frame; an identical frame extends the
    previous one's duration.

    Pillow's own animation writers keep every frame in memory. For 200 frames of 1280 × 800, its GIF writer took 255 MiB
    and 9.6 s for 1.3 MB; this one 51 MiB and 1.2 s for 74 kB.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self._path, self._file = path, path.open("wb")
        self._last: Image | None = None
        self._pending: tuple[Image, Box, int] | None = None
        """The pending region of a frame, its box, and its duration in milliseconds so far."""

    def add(self, frame: Frame) -> None:
        """Add the next frame; it is written once its duration is known."""
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
        """Write the pending frame."""
        if self._pending is not None:
            self.write(*self._pending)
            self._pending = None

    def discard(self) -> None:
        """Delete the file."""
        with suppress(OSError):  # a full disk cannot flush the rest; it is deleted anyway
            self._file.close()
        self._path.unlink(missing_ok=True)

    @abstractmethod
    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """Write this region of a frame to the file."""


def _difference_box(before: Image, after: Image) -> Box | None:
    """Return the bounding box of the difference between two frames; None if they are equal."""
    from PIL import ImageChops

    return ImageChops.difference(before, after).getbbox()


SIGNATURE = b"\x89PNG\r\n\x1a\n"


class ApngWriter(DeltaWriter):
    """Write an animated PNG. The frame count in the header is patched on close."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._frames = self._number = 0

    def close(self) -> None:
        """Write the last frame and patch the frame count."""
        self.flush()
        self._chunk(b"IEND", b"")
        self._file.seek(len(SIGNATURE) + _CHUNK + _HEADER)
        self._chunk(b"acTL", struct.pack(">II", self._frames, 0))
        self._file.close()

    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """Write a frame's control chunk and its data; the first frame uses IDAT, as in every PNG."""
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
"""Bytes around a chunk's data, and length of the header's data."""


def _idat_chunks(image: Image) -> Iterator[bytes]:
    """Yield the data of the IDAT chunks that Pillow writes for an image."""
    out = BytesIO()
    image.save(out, "PNG", compress_level=6)
    data, place = out.getvalue(), len(SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        if data[place + 4 : place + 8] == b"IDAT":
            yield data[place + 8 : place + 8 + length]
        place += _CHUNK + length


class GifWriter(DeltaWriter):
    """Write an animated GIF with one colour table per frame."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._has_header = False

    def close(self) -> None:
        """Write the last frame and the trailer."""
        self.flush()
        self._file.write(b";")
        self._file.close()

    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """Write a frame with its own colour table; the first one after the header."""
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
    """Write `0001.png`, `0002.png` … and `frames.csv`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._lines = ["file,milliseconds"]

    def add(self, frame: Frame) -> None:
        """Write the next picture immediately."""
        name = f"{len(self._lines):04}.png"
        frame.to_image().save(self._folder / name, "PNG")
        self._lines.append(f"{name},{frame.milliseconds}")

    def close(self) -> None:
        """Write the list of durations."""
        (self._folder / FRAME_LIST_NAME).write_text("\n".join(self._lines) + "\n", encoding="utf-8", newline="\n")

    def discard(self) -> None:
        """Delete the file."""
        shutil.rmtree(self._folder, ignore_errors=True)


FFMPEG, RATE = "ffmpeg", 25
"""Frames per second."""


def webm_unsupported_reason() -> str:
    """Return why WebM cannot be written here; empty if it can."""
    return "" if shutil.which("ffmpeg") else tr("WebM files require ffmpeg, which was not found.")


class WebmWriter:
    """Write a WebM at a constant frame rate, repeating each frame for its duration."""

    def __init__(self, path: Path) -> None:
        if why := webm_unsupported_reason():
            raise FilmError(why)
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._frames_written = self._due_milliseconds = 0

    def add(self, frame: Frame) -> None:
        """Write the next frame as often as its duration requires; rounding errors do not accumulate."""
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
        """Close the pipe and wait until ffmpeg has finished."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            if self._process.wait() != 0:
                raise self._ffmpeg_error()

    def discard(self) -> None:
        """Delete the file."""
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
        return FilmError(tr("ffmpeg could not create this WebM. Choose an animated PNG instead."))


APNG, GIF, WEBM, PNGS = "apng", "gif", "webm", "png"


class FilmFormat(NamedTuple):
    """A film format: its title and its writer."""

    title: str
    """Marked for translation: show it through `tr`."""
    create_writer: Callable[[Path], FilmWriter]


KINDS = {
    APNG: FilmFormat(mark("Animated picture (APNG)"), ApngWriter),
    GIF: FilmFormat(mark("Animated picture (GIF)"), GifWriter),
    WEBM: FilmFormat(mark("Video (WebM)"), WebmWriter),
    PNGS: FilmFormat(mark("One picture per step (PNG)"), PngFolderWriter),
}
"""Keyed by file ending; "one picture per step" writes into a folder of that name without the ending."""
ENDINGS = tuple(f".{kind}" for kind in KINDS)


class Film:
    """A film being written; it appears at `path` only once complete."""

    def __init__(self, path: Path) -> None:
        """Raises FilmError for an ending that is no film format, or if its folder already exists; OSError."""
        kind = KINDS.get(path.suffix.lower().removeprefix("."))
        if kind is None:
            raise FilmError(tr("The file name must end with {endings}.").format(endings=join_names(ENDINGS)))
        self.path = path.with_suffix("") if kind is KINDS[PNGS] else path
        if kind is KINDS[PNGS] and self.path.exists():
            raise FilmError(tr("{folder} already exists. Choose another name.").format(folder=self.path))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._part_path = self.path.with_name(f".{self.path.name}-part")
        self._remove_leftovers()
        self._writer = kind.create_writer(self._part_path)

    def add(self, frame: Frame) -> None:
        """Add the next frame. Raises OSError or FilmError."""
        self._writer.add(frame)

    def close(self) -> None:
        """Finish the film and move it to `path`. Raises OSError or FilmError."""
        self._writer.close()
        self._part_path.replace(self.path)

    def discard(self) -> None:
        """Delete everything written so far."""
        self._writer.discard()

    def _remove_leftovers(self) -> None:
        """Remove what an interrupted film has left."""
        if self._part_path.is_dir():
            shutil.rmtree(self._part_path)
        self._part_path.unlink(missing_ok=True)
