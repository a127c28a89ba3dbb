"""The commands that need no window (`decodescope generate …`) and their exit codes."""

from __future__ import annotations

from decodescope.resources.language import mark

COMMANDS: dict[str, tuple[str, str]] = {
    "generate": (
        "decodescope.app.start.cli.generate",
        mark("run a list of requests and write recordings, JSON Lines and CSV"),
    ),
    "watch": (
        "decodescope.core.generate_capture.watch",
        mark("run a Python script and show its generate calls in an open window"),
    ),
    "show": ("decodescope.app.start.cli.show", mark("print a recording in the terminal")),
}
"""Module and description of each command; the module's `run(arguments)` returns the exit code."""
INFORMATION = frozenset({"-h", "--help", "--version"})
"""Options that print something and end the program."""
DONE, FAILED, INVALID, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; something failed; wrong command line or input; interrupted with Ctrl+C."""
