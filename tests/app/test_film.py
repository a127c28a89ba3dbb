"""Films: a round trip, atomic creation, and no leftovers of a cancelled one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from decodescope.app.features.presentation import store
from decodescope.app.features.presentation.store import KINDS, Film, FilmError, Frame

WIDTH, HEIGHT = 21, 13


def frame(shade: int, milliseconds: int = 100) -> Frame:
    """One colour, and a dot at another place in each frame."""
    pixels = bytearray(bytes((10, 20, 30, 255)) * (WIDTH * HEIGHT))
    place = 4 * (shade % WIDTH + WIDTH * (shade % HEIGHT))
    pixels[place : place + 3] = bytes((shade, 200, 255 - shade))
    return Frame(WIDTH, HEIGHT, bytes(pixels), milliseconds)


FRAMES = [frame(0, 1500), frame(40, 60), frame(40, 40), frame(80, 70), frame(120, 3000)]
"""The second is shown for 100 ms in all: the third is the same."""
TIMES = [1500, 100, 70, 3000]


def written(path: Path) -> Path:
    film = Film(path)
    for one in FRAMES:
        film.add(one)
        assert not path.exists()
    film.close()
    return film.path


@pytest.mark.parametrize("kind", ["apng", "gif"])
def test_an_animated_picture_is_read_back(tmp_path: Path, kind: str) -> None:
    with Image.open(written(tmp_path / f"demo.{kind}")) as film:
        assert film.size == (WIDTH, HEIGHT)
        assert film.info.get("loop") == 0
        times, pictures = [], []
        for picture in ImageSequence.Iterator(film):
            times.append(round(picture.info["duration"]))
            pictures.append(picture.convert("RGB"))
    assert times == TIMES
    wanted = [FRAMES[number].to_image() for number in (0, 1, 3, 4)]
    assert [picture.tobytes() for picture in pictures] == [picture.tobytes() for picture in wanted]
    assert list(tmp_path.iterdir()) == [tmp_path / f"demo.{kind}"]


def test_png_film_is_folder_of_frames(tmp_path: Path) -> None:
    folder = written(tmp_path / "demo.png")
    assert folder == tmp_path / "demo"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["0001.png", "0002.png", "0003.png", "0004.png", "0005.png", "frames.csv"]
    with Image.open(folder / "0004.png") as picture:
        assert picture.convert("RGB").tobytes() == FRAMES[3].to_image().tobytes()
    assert (folder / "frames.csv").read_text().splitlines()[1] == "0001.png,1500"
    with pytest.raises(FilmError, match="already exists"):
        Film(tmp_path / "demo.png")


@pytest.mark.parametrize("kind", ["apng", "gif", "png"])
def test_discard_leaves_no_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"demo.{kind}"
    if kind != "png":
        path.write_bytes(b"an older one")
    film = Film(path)
    film.add(FRAMES[0])
    film.discard()
    assert [part.name for part in tmp_path.iterdir()] == ([] if kind == "png" else [path.name])
    assert kind == "png" or path.read_bytes() == b"an older one"


def test_leftover_part_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / ".demo.gif-part").write_bytes(b"GIF89a")
    (tmp_path / ".demo-part").mkdir()
    (tmp_path / ".demo-part" / "0001.png").touch()
    written(tmp_path / "demo.gif")
    written(tmp_path / "demo.png")
    assert sorted(part.name for part in tmp_path.iterdir()) == ["demo", "demo.gif"]


def test_unsupported_film_path_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FilmError, match=r"\.apng, \.gif"):
        Film(tmp_path / "demo.mp4")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Film(tmp_path / "file" / "demo.gif")


def test_a_webm_needs_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.shutil, "which", lambda name: None)
    with pytest.raises(FilmError, match="ffmpeg"):
        Film(tmp_path / "demo.webm")


@pytest.fixture
def needs_ffmpeg() -> None:
    if store.webm_unsupported_reason():
        pytest.skip("ffmpeg is not installed")


@pytest.mark.usefixtures("needs_ffmpeg")
def test_webm_film_is_written(tmp_path: Path) -> None:
    assert written(tmp_path / "demo.webm").read_bytes()[:4] == b"\x1a\x45\xdf\xa3"


def test_webm_encoder_failure_raises_film_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(store, "FFMPEG", "false")
    film = Film(tmp_path / "demo.webm")
    with pytest.raises(FilmError, match="animated PNG"):  # noqa: PT012  # the pipe may take some before it breaks
        for _ in range(50):
            film.add(frame(3, 4000))
        film.close()
    film.discard()
    assert list(tmp_path.iterdir()) == []


def test_every_kind_has_a_title() -> None:
    assert all(kind.title for kind in KINDS.values())
