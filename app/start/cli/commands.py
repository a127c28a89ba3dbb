"""Commands that need no window: `decodescope generate …`. The first argument selects one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from resources.language import mark

COMMANDS: dict[str, tuple[str, str]] = {
    "generate": ("app.start.cli.generate", mark("run a list of requests and write recordings, JSON Lines and CSV")),
    "watch": ("core.generate_capture.watch", mark("run a Python script and show its generate calls in an open window")),
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
