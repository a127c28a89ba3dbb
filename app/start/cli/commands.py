"""Commands that need no window: `decodescope generate …`. The first argument selects one."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decodescope.core.system.system_errors import system_error_reason
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
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is otherwise noticed when the interpreter ends
    except KeyboardInterrupt:
        print(tr("Interrupted."), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, for example `head`, has ended
        _discard_output()
        return DONE
    except OSError as error:
        if error.filename is None:
            _discard_output()
        print(f"decodescope {arguments[0]}: {_system_problem(error)}", file=sys.stderr)
        return FAILED
    return code


def _discard_output() -> None:
    """Let nothing more be written to standard output, which cannot take it."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_problem(error: OSError) -> str:
    """Return what the operating system refused, and the remedy."""
    reason = system_error_reason(error)
    if error.filename is None:
        return tr("The output cannot be written: {reason}. Free up space, or send it elsewhere.").format(reason=reason)
    return tr("{path} cannot be used: {reason}. Check the path, its permissions and the free space.").format(
        path=error.filename, reason=reason
    )


def use_saved_language(language: str = "", folder: str = "") -> None:
    """Use a language, or that of the settings in a folder or in the default one. Raises ImportError without Qt."""
    from decodescope.app.storage.settings_file import SettingsStore
    from decodescope.app.theme.language import set_language

    set_language(language or (SettingsStore(Path(folder)) if folder else SettingsStore()).saved_language)
