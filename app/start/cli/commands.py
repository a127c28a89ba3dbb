"""Commands that need no window: `decodescope generate …`. The first argument selects one."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence

from app.start.cli.parser import HelpFormatter, translate_argparse
from resources.language import mark, tr

COMMANDS: dict[str, tuple[str, str]] = {
    "generate": ("app.start.cli.generate", mark("run a list of requests and write recordings, JSON Lines and CSV")),
    "show": ("app.start.cli.show", mark("print a recording in the terminal")),
}
"""Module and description of each command; the module's `run(arguments)` returns the exit code."""
DONE, FAILED, INVALID, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; something failed; wrong command line or input; interrupted with Ctrl+C."""


def find_command(arguments: Sequence[str]) -> Callable[[Sequence[str]], int] | None:
    """Return the command that the first argument names; None to open the window."""
    if not arguments or arguments[0] not in COMMANDS:
        return None
    run: Callable[[Sequence[str]], int] = importlib.import_module(COMMANDS[arguments[0]][0]).run
    return run


def make_command_parser(name: str, details: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command, without options, in the current language."""
    with translate_argparse():
        return argparse.ArgumentParser(
            prog=f"decodescope {name}",
            description=tr(COMMANDS[name][1]),
            epilog=details or None,
            allow_abbrev=False,
            formatter_class=CommandHelpFormatter,
        )


class CommandHelpFormatter(HelpFormatter):
    """Keep the line breaks of the text after the options."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}" for line in text.splitlines()) if "\n" in text else super()._fill_text(
            text, width, indent
        )  # fmt: skip
