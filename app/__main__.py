"""Entry point of `decodescope` and `python -m app`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.start.qt_libraries import explain_missing, library_in

try:
    from PySide6.QtGui import QIcon
    from PySide6.QtWidgets import QApplication
except ImportError as error:
    if missing := library_in(str(error)):
        sys.exit(f"decodescope: {explain_missing(missing)}")
    raise

from decodescope import resources
from decodescope.app import build_window
from decodescope.app.start import qt_variables
from decodescope.app.start.application import Application
from decodescope.app.start.cli import CommandLineOptions, parse, peek_option
from decodescope.app.start.cli.commands import run_command
from decodescope.app.start.display import (
    choose_platform,
    ignore_window_manager_warnings,
    unusable_native_level_reason,
    unusable_platform_reason,
)
from decodescope.app.storage.settings import LANGUAGE_CHOICES
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.language import missing_notice, set_language
from decodescope.core.common.program_name import NAME, user_folder
from decodescope.core.common.text import escape_streams
from decodescope.core.errors import FileNotWrittenError
from decodescope.core.system.file_writing import temporary_folder
from decodescope.resources.language import ENGLISH

if TYPE_CHECKING:
    from decodescope.app.session.engine import Engine
    from decodescope.app.window.main_window import MainWindow


def main(arguments: Sequence[str] | None = None, engine: Engine | None = None) -> int:
    """Run the command that the first argument names, or open the window; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if (code := run_command(arguments)) is not None:
        return code
    with escape_streams():
        return _main(arguments, engine)


def _main(arguments: Sequence[str], engine: Engine | None) -> int:
    """Show the empty frame first, then import its contents and the event loop."""
    set_language(_language(arguments))
    if notice := missing_notice(_language(arguments)):
        print(f"{NAME}: {notice}", file=sys.stderr)
    options = parse(arguments)
    if problem := choose_platform(options) or unusable_platform_reason() or unusable_native_level_reason():
        print(f"decodescope: {problem}", file=sys.stderr)
        return 1
    ignore_window_manager_warnings()
    for notice in qt_variables.remove_invalid_variables():
        print(f"decodescope: {notice}", file=sys.stderr)
    application = QApplication.instance() or Application(["decodescope"])
    assert isinstance(application, QApplication)
    application.setApplicationName("Decodescope")
    application.setDesktopFileName("decodescope")
    application.setWindowIcon(QIcon(str(resources.path("icons", "decodescope.svg"))))
    application.setQuitOnLastWindowClosed(False)
    if options.pictures is not None:
        return _exit(_run_album(application, options.pictures, options, engine))
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the window can close cleanly
    try:
        with _settings_folder(options) as folder, _crash_reporter(options):
            code = _run_window(application, options, engine, folder)
    except FileNotWrittenError as problem:
        print(f"decodescope: {problem}", file=sys.stderr)
        code = 1
    return _exit(code)


def _settings_folder(options: CommandLineOptions) -> AbstractContextManager[Path | None]:
    """Return the settings folder; None for the default. Runs that write files use a temporary one, so that they depend
    only on the command line.
    """
    return (
        temporary_folder() if options.config_dir is None and options.writes_files else nullcontext(options.config_dir)
    )


def _crash_reporter(options: CommandLineOptions) -> AbstractContextManager[object]:
    """Return what writes crash reports into the settings folder; nothing for runs that write files and exit."""
    if options.writes_files:
        return nullcontext()
    from decodescope.app.start.crash_report import CrashReporter
    from decodescope.app.state.versions import own_version

    return CrashReporter((options.config_dir or user_folder("config")) / "crashes", own_version())


def _run_window(
    application: QApplication,
    options: CommandLineOptions,
    engine: Engine | None,
    folder: Path | None,
) -> int:
    language = options.language or (ENGLISH if options.writes_files else "")
    window = build_window(folder, _engine(options, engine), assembled=False, language=language)
    if not options.writes_files:
        window.show()
        application.processEvents()
    return _run_loop(application, window, options)


def _language(arguments: Sequence[str]) -> str:
    """Return the language to use, also for the command line's own messages."""
    if language := peek_option(arguments, "--language", LANGUAGE_CHOICES):
        return language
    folder = peek_option(arguments, "--config-dir")
    return (SettingsStore(Path(folder)) if folder else SettingsStore()).saved_language


def _engine(options: CommandLineOptions, engine: Engine | None) -> Engine | None:
    """Return the given engine, wrapped for deterministic or recorded runs; None for the default engine."""
    if not options.still and options.record is None:
        return engine
    from decodescope.app.session.engine_router import EngineRouter

    engine = engine or EngineRouter()
    if options.still:
        from decodescope.app.session.engine_proxy import DeterministicEngine

        engine = DeterministicEngine(engine)
    if options.record is not None:
        from decodescope.app.session.engine_proxy import RecordingEngine

        engine = RecordingEngine(engine, options.record)
    return engine


def _run_album(application: QApplication, path: Path, options: CommandLineOptions, engine: Engine | None) -> int:
    """Draw the pictures of a script and return the exit code."""
    import qasync

    from decodescope.app.album.picture import AlbumError
    from decodescope.app.album.picture_drawing import draw_album
    from decodescope.app.album.picture_script import read_script
    from decodescope.app.start.termination import run_until_exit

    try:
        pictures = read_script(path, options.scale or 1.0, options.still, options.allow_outside)
    except AlbumError as problem:
        print(f"decodescope: {problem}", file=sys.stderr)
        return 2
    with qasync.QEventLoop(application) as loop:
        return run_until_exit(loop, draw_album(pictures, engine))


def _run_loop(application: QApplication, window: MainWindow, options: CommandLineOptions) -> int:
    import qasync

    from decodescope.app.start.launch import start
    from decodescope.app.start.termination import run_until_exit

    with qasync.QEventLoop(application) as loop:
        return run_until_exit(loop, start(window, options), window)


def _exit(code: int) -> int:
    """End the process at once if a worker thread is stuck, because a normal shutdown would wait for it."""
    from decodescope.app.session.worker import is_any_stuck

    if is_any_stuck():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
