"""Print the help or the version of the program without Qt, which the window needs and a server may lack."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from decodescope.app.start.cli.commands import use_saved_language
from decodescope.app.start.cli.parser import parse, peek_option
from decodescope.app.storage.settings import LANGUAGE_CHOICES
from decodescope.core.common.text import escape_streams

OPTIONS = frozenset({"-h", "--help", "--version"})
"""Options that print something and end the program."""


def print_information(arguments: Sequence[str]) -> None:
    """Print what an option asks for and raise SystemExit; do nothing without such an option."""
    if OPTIONS.isdisjoint(arguments):
        return
    with suppress(ImportError):  # without Qt's libraries in English
        use_saved_language(
            peek_option(arguments, "--language", LANGUAGE_CHOICES), peek_option(arguments, "--config-dir")
        )
    with escape_streams():
        parse(arguments)
