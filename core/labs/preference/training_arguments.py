"""Limits and folders of the trainings, and the error for a folder that cannot be written. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path

from core.checks.arguments import argument_error, check_folder, check_integer, check_number
from core.common.former_name import user_folder
from core.errors import FileNotWrittenError, PreferenceError
from core.models.catalog import BUNDLED
from resources.language import tr

MAX_STEPS = 1_000_000
MAX_TEXTS = 10_000
MAX_TOKENS = 100_000
"""Tokens of a text."""
MAX_SEED = 2**32 - 1
"""A step's own seed is made of it by a factor, and has to stay within 64 bits."""
MAX_LEARNING_RATE = 1.0


def check_training(steps: int, seed: int, rate: float) -> None:
    """Raises ParameterError."""
    check_integer("steps", steps, 1, MAX_STEPS)
    check_seed(seed)
    check_number("rate", rate, 0, MAX_LEARNING_RATE)


def check_seed(seed: int) -> None:
    """Raises ParameterError."""
    check_integer("seed", seed, 0, MAX_SEED)


def check_text_count(name: str, count: int) -> None:
    """Raises ParameterError unless so many texts can be drawn."""
    check_integer(name, count, 1, MAX_TEXTS)


def check_max_tokens(max_tokens: int) -> None:
    """Raises ParameterError."""
    check_integer("longest", max_tokens, 1, MAX_TOKENS)


def not_written_error(target: Path | str, error: Exception | None = None) -> FileNotWrittenError:
    """The error that names it, and the system's reason where there is one."""
    reason = (error.strerror if isinstance(error, OSError) else None) or tr("it cannot be written")
    return FileNotWrittenError(
        tr("{target} was not written: {reason}.").format(target=target, reason=reason),
        tr("Choose a folder you may write to."),
        str(error or ""),
    )


def lab_folder(folder: str | Path | None, name: str) -> Path:
    """`folder`, or one of that name in the user's data. Raises PreferenceError where it is a bundled model's, or a
    file; ParameterError where it is no path."""
    if folder is None:
        folder = user_folder("data") / "preference" / name
    check_folder("folder", folder)
    path = _absolute_path(folder)
    if os.path.isfile(path):  # which says no where one may not look
        raise PreferenceError(
            tr("{folder} is a file, and what is trained is kept in a folder.").format(folder=path),
            tr("Choose another."),
        )
    if path.is_relative_to(BUNDLED.resolve()):
        raise PreferenceError(
            tr("{folder} belongs to the models that ship with the program.").format(folder=path),
            tr("Choose a folder of your own: a bundled model is never changed."),
        )
    return path


def writable_lab_folder(folder: str | Path | None, name: str) -> Path:
    """`lab_folder`, where something can be written: it, or what it would be made in, is a folder that one may write to.
    Raises FileNotWrittenError, too."""
    path = lab_folder(folder, name)
    try:
        nearest = next(each for each in (path, *path.parents) if each.exists())
    except OSError as error:
        raise not_written_error(path, error) from error
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise not_written_error(path)
    return path


def _absolute_path(folder: str | Path) -> Path:
    """From the root on. Raises ParameterError for what no path can hold, and for the home of nobody."""
    try:
        return Path(folder).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise argument_error("folder", str(folder), tr("Give the path of a folder.")) from error
