"""Where the lab keeps what it makes: in the user's data, never beside the bundled models."""

from __future__ import annotations

from pathlib import Path

from core.arguments import check_folder, refused
from core.errors import PreferenceError
from core.models.catalog import BUNDLED
from resources.language import tr


def home(folder: str | Path | None, name: str) -> Path:
    """`folder`, or one of that name in the user's data. Raises PreferenceError where it is a bundled model's, or a
    file; ParameterError where it is no path."""
    if folder is None:
        import platformdirs

        folder = Path(platformdirs.user_data_dir("tokenscope", appauthor=False)) / "preference" / name
    check_folder("folder", folder)
    path = _whole(folder)
    if path.exists() and not path.is_dir():
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


def _whole(folder: str | Path) -> Path:
    """From the root on. Raises ParameterError for what no path can hold, and for the home of nobody."""
    try:
        return Path(folder).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise refused("folder", str(folder), tr("Give the path of a folder.")) from error
