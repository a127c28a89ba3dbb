"""Where the lab keeps what it makes: in the user's data, never beside the bundled models."""

from __future__ import annotations

from pathlib import Path

from core.errors import PreferenceError
from core.models.catalog import BUNDLED
from resources.language import tr


def home(folder: str | Path | None, name: str) -> Path:
    """`folder`, or one of that name in the user's data. Raises PreferenceError where it is a bundled model's."""
    if folder is None:
        import platformdirs

        folder = Path(platformdirs.user_data_dir("tokenscope", appauthor=False)) / "preference" / name
    path = Path(folder).expanduser().resolve()
    if path.is_relative_to(BUNDLED.resolve()):
        raise PreferenceError(
            tr("{folder} belongs to the models that ship with the program.").format(folder=path),
            tr("Choose a folder of your own: a bundled model is never changed."),
        )
    return path
