"""Limits and folders of the trainings. Imports no torch."""

from __future__ import annotations

import os
from pathlib import Path

from decodescope.core.checks.arguments import argument_error, check_folder, check_integer, check_number
from decodescope.core.common.program_name import user_folder
from decodescope.core.errors import PreferenceError
from decodescope.core.models.catalog import BUNDLED
from decodescope.core.system.file_writing import not_written_error
from decodescope.resources.language import tr

MAX_STEPS = 1_000_000
MAX_TEXTS = 10_000
MAX_TOKENS = 100_000
"""Tokens of a text."""
MAX_SEED = 2**32 - 1
"""A step's seed is a multiple of it and must fit into 64 bits."""
MAX_LEARNING_RATE = 1.0


def check_training(steps: int, seed: int, rate: float) -> None:
    """Raise ParameterError for an invalid number of steps, seed or learning rate."""
    check_integer("steps", steps, 1, MAX_STEPS)
    check_seed(seed)
    check_number("rate", rate, 0, MAX_LEARNING_RATE)


def check_seed(seed: int) -> None:
    """Raise ParameterError for an invalid seed."""
    check_integer("seed", seed, 0, MAX_SEED)


def check_text_count(name: str, count: int) -> None:
    """Raise ParameterError for an invalid number of texts."""
    check_integer(name, count, 1, MAX_TEXTS)


def check_max_tokens(max_tokens: int) -> None:
    """Raise ParameterError for an invalid length."""
    check_integer("longest", max_tokens, 1, MAX_TOKENS)


def lab_folder(folder: str | Path | None, name: str) -> Path:
    """Return `folder`, or the folder called `name` in the user's data.

    Raises PreferenceError for a file or a bundled model's folder; ParameterError for an invalid path.
    """
    if folder is None:
        folder = user_folder("data") / "preference" / name
    check_folder("folder", folder)
    path = _absolute_path(folder)
    if os.path.isfile(path):  # returns False without permission
        raise PreferenceError(
            tr("{folder} is a file, but a folder is needed to save the trained model.").format(folder=path),
            tr("Choose a folder."),
        )
    if path.is_relative_to(BUNDLED.resolve()):
        raise PreferenceError(
            tr("{folder} belongs to a model that ships with the program.").format(folder=path),
            tr("Choose another folder; bundled models are never changed."),
        )
    return path


def writable_lab_folder(folder: str | Path | None, name: str) -> Path:
    """Return the folder like `lab_folder`, and check that it, or its nearest existing parent, is writable.

    Also raises FileNotWrittenError.
    """
    path = lab_folder(folder, name)
    try:
        nearest = next(each for each in (path, *path.parents) if each.exists())
    except OSError as error:
        raise not_written_error(path, error) from error
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise not_written_error(path)
    return path


def _absolute_path(folder: str | Path) -> Path:
    """Return the absolute path. Raises ParameterError for an invalid path or an unknown home folder."""
    try:
        return Path(folder).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise argument_error("folder", str(folder), tr("Give a folder path.")) from error
