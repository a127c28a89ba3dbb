"""Run a command that needs no window: `decodescope generate …`. The first argument selects one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decodescope.app.start.cli.commands import COMMANDS, INFORMATION, INTERRUPTED
from decodescope.resources.language import tr


def run_command(arguments: Sequence[str]) -> int | None:
    """Run the command that the first argument names and return its exit code; None if it names none. Help and version
    are printed here too, and end the process: they need neither a screen nor Qt.
    """
    if not arguments or arguments[0] not in COMMANDS:
        if not INFORMATION.isdisjoint(arguments):
            _print_information(arguments)
        return None
    with suppress(ImportError):  # without Qt's libraries, as on a server, messages are in English
        _use_saved_language()
    try:
        code: int = importlib.import_module(COMMANDS[arguments[0]][0]).run(arguments[1:])
    except KeyboardInterrupt:
        print(tr("Interrupted."), file=sys.stderr)
        return INTERRUPTED
    return code


def _print_information(arguments: Sequence[str]) -> None:
    """Parse the command line, which prints the help or the version and raises SystemExit."""
    from decodescope.app.start.cli.parser import parse, peek_option
    from decodescope.app.storage.settings import LANGUAGE_CHOICES
    from decodescope.core.common.text import escape_streams

    with suppress(ImportError):
        _use_saved_language(
            peek_option(arguments, "--language", LANGUAGE_CHOICES), peek_option(arguments, "--config-dir")
        )
    with escape_streams():
        parse(arguments)


def _use_saved_language(language: str = "", folder: str = "") -> None:
    """Use a language, or that of the settings in a folder or in the default one. Raises ImportError without Qt."""
    from decodescope.app.storage.settings_file import SettingsStore
    from decodescope.app.theme.language import set_language

    set_language(language or (SettingsStore(Path(folder)) if folder else SettingsStore()).saved_language)
