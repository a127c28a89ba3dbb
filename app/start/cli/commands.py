"""Commands that need no window: `decodescope generate …`. The first argument selects one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decodescope.resources.language import mark, tr

COMMANDS: dict[str, tuple[str, str]] = {
    "generate": (
        "decodescope.app.start.cli.generate",
        mark("run a list of requests and write recordings, JSON Lines and CSV"),
    ),
    "study": (
        "decodescope.app.start.cli.study",
        mark("run a study from a file and write a report"),
    ),
    "atlas": (
        "decodescope.app.start.cli.atlas",
        mark("list all texts that one seed gives while a setting changes"),
    ),
    "probability": (
        "decodescope.app.start.cli.probability",
        mark("compute sure bounds on the probability that an answer matches a text or a pattern"),
    ),
    "infer-settings": (
        "decodescope.app.start.cli.infer_settings",
        mark("find the temperature, top-k, top-p and min-p with which a model wrote a text"),
    ),
    "claim": (
        "decodescope.app.start.cli.claim",
        mark("test a published claim on a model"),
    ),
    "watch": (
        "decodescope.core.generate_capture.watch",
        mark("run a Python script and show its generate calls in an open window"),
    ),
    "serve": (
        "decodescope.core.server.serve_command",
        mark("serve a model with the API of OpenAI"),
    ),
    "show": ("decodescope.app.start.cli.show", mark("print a recording in the terminal")),
    "why": ("decodescope.app.start.cli.why", mark("print why two recordings have different texts")),
}
"""Module and description of each command; the module's `run(arguments)` returns the exit code."""
DONE, FAILED, INVALID, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; something failed; wrong command line or input; interrupted with Ctrl+C."""


def run_command(arguments: Sequence[str]) -> int | None:
    """Run the command that the first argument names and return its exit code; None if it names none."""
    if not arguments or arguments[0] not in COMMANDS:
        return None
    with suppress(ImportError):  # without Qt's libraries, as on a server, messages are in English
        use_saved_language()
    try:
        code: int = importlib.import_module(COMMANDS[arguments[0]][0]).run(arguments[1:])
    except KeyboardInterrupt:
        print(tr("Interrupted."), file=sys.stderr)
        return INTERRUPTED
    return code


def use_saved_language(language: str = "", folder: str = "") -> None:
    """Use a language, or that of the settings in a folder or in the default one. Raises ImportError without Qt."""
    from decodescope.app.storage.settings_file import SettingsStore
    from decodescope.app.theme.language import set_language

    set_language(language or (SettingsStore(Path(folder)) if folder else SettingsStore()).saved_language)
