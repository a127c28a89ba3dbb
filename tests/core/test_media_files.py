"""Audio and image files: their content, how they are read, and errors for unreadable ones."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from decodescope import core
from decodescope.core import errors, media
from decodescope.core.events import MediumRead
from decodescope.core.media import media_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


def tone(path: Path, rate: int = 16_000, seconds: float = 0.5, channels: int = 1, hertz: float = 440.0) -> Path:
    """A sine in every channel, each half as loud as the one before."""
    wave = np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)
    soundfile.write(path, np.stack([wave / 2**i for i in range(channels)], 1), rate)
    return path


def test_importing_media_loads_no_heavy_library() -> None:
    code = (
        "import sys; from decodescope import core; core.media.MOST_SECONDS\n"
        "print([m for m in ('torch', 'numpy', 'PIL', 'soundfile', 'soxr') if m in sys.modules])"
    )
    reported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert reported.stdout.strip() == "[]", reported.stderr


def test_audio_file_is_described_and_resampled(folder: Path) -> None:
    path = tone(folder / "a.flac", rate=44_100, seconds=0.5, channels=2)
    found = media.inspect(path)
    assert (found.kind, found.format, found.rate, found.channels) == ("sound", "FLAC", 44_100, 2)
    assert found.seconds == pytest.approx(0.5)
    assert found.bytes == path.stat().st_size
    received = media.samples(path, 16_000)
    assert received.dtype == np.float32
    assert received.shape == (8_000,)
    same = 0.75 * np.sin(2 * np.pi * 440 * np.arange(8_000) / 16_000)
    assert np.abs(received - same)[200:-200].max() < 0.01  # resampled, and the mean of both channels
    assert media.samples(str(path), 44_100).shape == (22_050,)


@pytest.mark.parametrize("name", ["b.wav", "b.ogg", "b.mp3", "b.aiff"])
def test_audio_formats_are_recognized_by_their_first_bytes(folder: Path, name: str) -> None:
    path = tone(folder / name)
    other = folder / f"{name}.txt"
    other.write_bytes(path.read_bytes())
    assert media.inspect(other).seconds == pytest.approx(0.5, abs=0.1)


def saved(picture: Image.Image, path: Path, **options: object) -> Path:
    picture.save(path, **options)
    return path


def test_image_is_rotated_by_its_exif_orientation(folder: Path) -> None:
    turned = Image.new("RGB", (4, 2), "red")
    turned.putpixel((0, 0), (0, 0, 255))
    exif = Image.Exif()
    exif[0x0112] = 6  # held sideways
    path = saved(turned, folder / "turned.png", exif=exif)
    found = media.inspect(path)
    assert (found.kind, found.format, found.width, found.height, found.frames) == ("picture", "PNG", 2, 4, 1)
    assert media.picture(path).getpixel((1, 0)) == (0, 0, 255)


def test_all_pixel_formats_are_converted_to_rgb(folder: Path) -> None:
    half = Image.new("RGBA", (2, 2), (255, 0, 0, 0))
    assert media.picture(saved(half, folder / "alpha.png")).getpixel((0, 0)) == (255, 255, 255)
    palette = Image.new("P", (2, 2), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    assert media.picture(saved(palette, folder / "p.png")).getpixel((0, 0)) == (10, 20, 30)
    assert media.picture(saved(palette, folder / "t.png", transparency=1)).getpixel((0, 0)) == (255, 255, 255)
    wide = Image.fromarray(np.full((2, 2), 0x8080, np.uint16))
    assert media.picture(saved(wide, folder / "wide.png")).getpixel((0, 0)) == (128, 128, 128)
    inks = media.picture(saved(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), folder / "inks.jpg"))
    assert inks.mode == "RGB"
    assert inks.getpixel((4, 4))[0] < 40  # cyan has no red in it
    moving = saved(Image.new("RGB", (2, 2), "red"), folder / "moving.gif", save_all=True,
                   append_images=[Image.new("RGB", (2, 2), "blue")])  # fmt: skip
    assert media.inspect(moving).frames == 2
    assert media.picture(moving).getpixel((0, 0)) == (255, 0, 0)


def bomb(width: int, height: int) -> bytes:
    """A PNG that promises more pixels than it has bytes for."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(bytes(99)))


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def test_unusable_media_files_raise_an_error_with_a_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe.wav")
    wav = tone(folder / "whole.wav").read_bytes()
    picture = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(picture, "PNG")
    broken = np.zeros(100, np.float32)
    broken[50] = np.nan
    soundfile.write(folder / "nan.wav", broken, 16_000, subtype="FLOAT")
    soundfile.write(folder / "silent.wav", broken[:0], 16_000)
    for name, content in {
        "empty.wav": b"", "cut.wav": wav[:-400], "head.wav": wav[:20], "noise.mp3": b"ID3" + bytes(500),
        "text.png": b"hello, I am no picture", "cut.png": picture.getvalue()[:-600], "short.jpg": b"\xff\xd8\xff\xe0",
        "bomb.png": bomb(9_000, 9_000), "huge.png": bomb(60_000, 60_000),
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    wrong: dict[str, type[errors.MediaError]] = {
        "none.wav": errors.MediaMissingError, "": errors.MediaMissingError, "pipe.wav": errors.MediaMissingError,
        "a\0b": errors.MediaMissingError, "text.png": errors.MediaFormatError, "bomb.png": errors.MediaTooLargeError,
        "huge.png": errors.MediaTooLargeError,
    } | dict.fromkeys(
        ("empty.wav", "cut.wav", "head.wav", "noise.mp3", "cut.png", "short.jpg", "nan.wav", "silent.wav"),
        errors.MediaDamagedError,
    )  # fmt: skip
    for name, kind in wrong.items():
        with pytest.raises(errors.MediaError) as caught:
            media.inspect(folder / name)
        assert type(caught.value) is kind, name
        assert caught.value.cause
        assert caught.value.remedy
    monkeypatch.setattr("decodescope.core.media.sounds.MOST_SECONDS", 0.4)
    with pytest.raises(errors.MediaTooLargeError, match="longer"):
        media.inspect(folder / "whole.wav")
    monkeypatch.setattr("decodescope.core.media.media_files.MOST_BYTES", 100)
    with pytest.raises(errors.MediaTooLargeError, match="bytes"):
        media.inspect(folder / "whole.wav")
    assert media_files.MOST_SECONDS == 600


def test_positions_are_labelled_by_patch_or_time() -> None:
    picture = MediumRead("/x/girl.png", "picture", "", "prompt", first=2, last=8, rows=2, columns=3)
    assert core.medium_label(picture) == "picture 2 × 3 patches"
    assert core.medium_part(picture, 2) == "a part of girl.png"  # one more than patches: a summary of all
    assert core.medium_part(picture, 3) == "row 1, column 1 of girl.png"
    assert core.medium_part(picture, 8) == "row 2, column 3 of girl.png"
    sound = MediumRead("a.wav", "sound", "", "encoder", first=0, last=1499, seconds=4.04, heard=30.0)
    assert core.medium_label(sound) == "sound 0.0–4.0 s"
    assert core.medium_part(sound, 100) == "2.00–2.02 s of a.wav"
    assert core.medium_place(sound, 1500) is None


def test_recording_longer_than_the_window_is_labelled_by_what_is_read() -> None:
    long = MediumRead("a.wav", "sound", "", "encoder", first=0, last=79, seconds=44.0, heard=4.0)
    assert core.medium_label(long) == "sound 0.0–4.0 s of 44.0 s"
    assert core.medium_part(long, 79) == "3.95–4.00 s of a.wav"
    assert core.medium_sentence(long).startswith("Only its first 4.0 s are read")
    whole = MediumRead("a.wav", "sound", "", "encoder", first=0, last=79, seconds=4.0, heard=4.0)
    assert core.medium_label(whole) == "sound 0.0–4.0 s"
    assert "Only" not in core.medium_sentence(whole)


def test_text_model_refuses_media(folder: Path) -> None:
    model = core.load("storyteller")
    assert model.modalities == core.Modalities()
    with pytest.raises(errors.MediaRefusedError, match="accepts text only"):
        core.run(model, core.Request("Once", media=[folder / "whole.wav"]))
    with pytest.raises(errors.ParameterError, match="paths"):
        core.run(model, core.Request("Once", media="whole.wav"))
