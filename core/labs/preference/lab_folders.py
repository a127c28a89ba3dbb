"""Where the lab keeps what it makes: in the user's data, never beside the bundled models."""

from __future__ import annotations

import os
from pathlib import Path

from core.arguments import argument_error, check_folder
from core.errors import PreferenceError
from core.former_name import user_folder
from core.labs.preference.write_errors import not_written_error
from core.models.catalog import BUNDLED
from resources.language import tr


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
