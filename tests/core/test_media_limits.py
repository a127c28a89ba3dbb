"""Small audio and image files with a huge decoding cost are refused, or decoded within limits."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from decodescope.core import media
from decodescope.core.errors import MediaDamagedError, MediaTooLargeError
from decodescope.core.media import media_files, pictures, sounds
from decodescope.core.media.pictures import (
    DecodeTimeoutError,
    TimeLimitedBytes,
    count_chunks,
    count_frames,
    count_scans,
)


def jpeg(width: int, height: int, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(buffer, "JPEG", **options)
    return buffer.getvalue()


def with_scans(content: bytes, count: int) -> bytes:
    """The last scan of a progressive JPEG, its header repeated before it."""
    last = content.rfind(b"\xff\xda")
    return content[:last] + content[last : last + 12] * count + content[last:]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, more: bytes = b"") -> bytes:
    packed = zlib.compressobj()
    rows = b"".join(packed.compress(b"\0" * (1 + width)) for _ in range(min(height, 1000))) + packed.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff(fields: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    entries = b"".join(struct.pack("<HHII", *field) for field in fields)
    return b"II*\0" + struct.pack("<IH", 8, len(fields)) + entries + struct.pack("<I", following)


@pytest.fixture
def no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that is refused is not decoded first."""

    def fail(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(pictures, "_decode_picture", fail)


REFUSED: dict[str, Callable[[], bytes]] = {
    "a JPEG of thousands of scans": lambda: with_scans(jpeg(64, 64, progressive=True), 5000),
    "a large JPEG of many scans": lambda: with_scans(jpeg(4000, 4000, progressive=True), 200),
    "a PNG of one column": lambda: png(1, 64_000_000),
    "a PNG of one row": lambda: png(100_000, 1),
    "a PNG of very many chunks": lambda: png(4, 4, chunk(b"prVt", b"") * 110_000),
    "a TIFF of very many strips": lambda: tiff([(256, 4, 1, 8), (257, 4, 1, 8), (273, 4, 2**24, 8)]),
}


@pytest.mark.usefixtures("no_decoding")
@pytest.mark.parametrize("name", REFUSED)
def test_image_that_takes_too_long_to_decode_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(REFUSED[name]())
    for call in (media.inspect, media.picture):
        with pytest.raises(MediaTooLargeError) as error:
            call(file)
        assert error.value.remedy


@pytest.mark.parametrize("progressive", [False, True])
def test_usual_jpegs_are_read(progressive: bool, tmp_path: Path) -> None:
    content = jpeg(300, 200, progressive=progressive, exif=b"Exif\0\0\xff\xda\xff\xda" * 9)
    assert count_scans(content) == (count_scans(jpeg(8, 8, progressive=progressive)))
    (tmp_path / "x.jpg").write_bytes(content)
    assert (media.inspect(tmp_path / "x.jpg").width, media.picture(tmp_path / "x.jpg").size) == (300, (300, 200))


def test_scans_and_chunks_are_counted_up_to_the_limit() -> None:
    assert 1 < count_scans(jpeg(64, 64, progressive=True)) < 20
    assert count_scans(with_scans(jpeg(8, 8, progressive=True), 10**5)) == pictures.MAX_SCANS + 1
    assert count_chunks(png(4, 4)) == 3
    assert count_chunks(png(4, 4, chunk(b"prVt", b"") * 10)) == 13


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("kind", ["GIF", "TIFF"])
def test_frame_count_equals_that_of_pillow(kind: str, count: int, tmp_path: Path) -> None:
    frames = [Image.new("L", (9, 7), 5 * n) for n in range(count)]
    file = tmp_path / "x"
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    with Image.open(file) as opened:
        assert count_frames(file.read_bytes()) == getattr(opened, "n_frames", 1) == count
    assert media.inspect(file).frames == count


def test_frames_without_end_are_counted_up_to_the_limit() -> None:
    head = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0, 0, 0)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 4, 4, 0) + b"\x02\x02\x44\x01\x00"
    assert count_frames(head + frame * 50_000 + b";") == pictures.MAX_FRAMES
    assert count_frames(tiff([], following=8)) == 1  # a directory that follows itself


def test_endless_decoder_is_interrupted() -> None:
    file = TimeLimitedBytes(b"x" * 100, seconds=-1.0)
    with pytest.raises(DecodeTimeoutError):
        file.read(1)
    assert TimeLimitedBytes(b"abc").read() == b"abc"


def test_slow_image_raises_media_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.gif"
    Image.new("L", (9, 9)).save(file)
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "thread_time", lambda: 10.0 * next(clock))
    with pytest.raises(MediaTooLargeError, match="too long"):
        media.inspect(file)


@pytest.mark.parametrize(("rate", "channels"), [(655_350, 8), (48_000, 65)])
def test_sound_that_decompresses_too_far_is_refused(
    rate: int, channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sounds, "MAX_SAMPLES", 500_000)
    file = tmp_path / "x.wav"
    soundfile.write(file, np.zeros((200_000, channels), np.int16), rate, format="WAV")
    with pytest.raises((MediaTooLargeError, MediaDamagedError)):
        media.inspect(file)


def test_blocks_of_many_channels_take_no_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    read = soundfile.SoundFile.read

    def noted(self: Any, frames: int, **options: Any) -> Any:
        block = read(self, frames, **options)
        sizes.append(block.size)
        return block

    monkeypatch.setattr(soundfile.SoundFile, "read", noted)
    file = tmp_path / "x.wav"
    soundfile.write(file, np.zeros((100_000, 64), np.int16), 8000)
    assert media.inspect(file).channels == 64
    assert max(sizes) <= sounds._BLOCK_SAMPLES


def test_sample_limit_allows_ten_minutes_of_studio_audio() -> None:
    assert media_files.MAX_SAMPLES >= 600 * 192_000 * 2
