"""The pictures of an album, drawn one after another: each in a window of its own, which knows nothing of the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from app import build_window
from app.album.picture import AlbumError, Picture
from app.album.picture_keys import PANELS
from app.album.picture_setup import prepare_run
from app.album.picture_state import apply_state
from app.album.targets import check_target
from app.session.deterministic_engine import DeterministicEngine
from app.session.engine import Engine
from app.session.engines import EngineRouter
from app.start.output_files import PictureError, hide_transient_state, save_picture
from app.start.window_waiting import LaunchProblem, redraw_from_scratch, wait_until_painted, wait_until_settled
from app.storage.json_files import StorageError
from app.storage.settings_file import SettingsStore
from app.window.main_window import MainWindow
from core.errors import FileNotWrittenError
from core.file_writing import temporary_folder


async def draw_album(pictures: Sequence[Picture], engine: Engine | None = None) -> int:
    """Draw and write them all; what cannot be is told, and the others are made. Gives back the exit code.

    Pictures of one model follow each other, so that it is loaded once; `engine` takes the core's place in tests.
    """
    shared, failed = engine or EngineRouter(), 0
    for picture in sorted(pictures, key=lambda picture: picture.model):
        try:
            await _draw_picture(picture, DeterministicEngine(shared) if picture.still else shared)
        except (AlbumError, LaunchProblem, PictureError, FileNotWrittenError, StorageError) as problem:
            failed += 1
            print(f"decodescope: {picture.label}: {problem}", file=sys.stderr)
    return 1 if failed else 0


async def _draw_picture(picture: Picture, engine: Engine) -> None:
    with temporary_folder() as folder:
        _write_settings(folder, picture)
        window = build_window(folder, engine, assembled=False)
        window.assemble()
        window.firstPainted.disconnect(
            window.parts.centre.create_remaining_views
        )  # nobody is going to look at the other views
        try:
            await _prepare_window(window, picture)
            _recheck_target(picture.out)
            save_picture(window, picture.out, picture.scale)
        finally:
            window.close()  # ends its worker: the engine goes on to the next window's
            window.deleteLater()


def _recheck_target(path: Path) -> None:
    """Refuse to replace what has been put there since the script was read. Raises AlbumProblem."""
    try:
        check_target(path, None)
    except ValueError as problem:
        raise AlbumError(str(problem)) from None


def _write_settings(folder: Path, picture: Picture) -> None:
    """Settings that a window reads as it opens: quicker than to change its looks afterwards."""
    store = SettingsStore(folder)
    look, layout = store.settings.appearance, store.settings.layout
    look.theme, look.font_scale, look.language = picture.theme, picture.font_scale, picture.language
    layout.setup, layout.inspector, layout.timeline = (panel not in picture.hide for panel in PANELS)
    store.save()


async def _prepare_window(window: MainWindow, picture: Picture) -> None:
    """The window as the picture shows it."""
    window.resize(*picture.size)
    await prepare_run(window, picture)
    await wait_until_settled(window)
    if picture.still:
        await redraw_from_scratch(window)
    await apply_state(window, picture)
    await wait_until_settled(window)
    if picture.still:
        hide_transient_state(window)
    await wait_until_painted(window)
