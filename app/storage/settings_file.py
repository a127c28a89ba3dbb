"""The settings file: read with care, written whole."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.storage.settings import SECTIONS, Settings

FILE_NAME = "settings.json"
GEOMETRY_NAME = "geometry.ini"


def default_folder() -> Path:
    """Where this user's settings live on this system."""
    import platformdirs  # asked only when no other folder is given

    return Path(platformdirs.user_config_dir("tokenscope", appauthor=False))


@dataclass(slots=True)
class SettingsStore:
    """Settings of one folder; `notices` says in words what had to be repaired when they were read."""

    folder: Path = field(default_factory=default_folder)
    settings: Settings = field(default_factory=Settings)
    notices: list[str] = field(default_factory=list)
    _unknown: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The JSON file."""
        return self.folder / FILE_NAME

    @property
    def presets(self) -> Path:
        """The folder of saved generation configs."""
        return self.folder / "presets"

    @property
    def geometry(self) -> Path:
        """QSettings' file for sizes and places."""
        return self.folder / GEOMETRY_NAME

    def load(self) -> Settings:
        """Read the file; whatever cannot be read is replaced by defaults and told in `notices`."""
        self.settings = Settings()
        data = self._read()
        for name, section in SECTIONS.items():
            if name in data:
                setattr(self.settings, name, self._section(name, section, data[name]))
        self._unknown = {name: value for name, value in data.items() if name not in SECTIONS}
        return self.settings

    def save(self) -> None:
        """Write everything, through a file beside it so that a crash leaves the old one whole."""
        data = {name: getattr(self.settings, name).write() for name in SECTIONS}
        write_json(self.path, {**self._unknown, **data})

    def _read(self) -> dict[str, Any]:
        data, problem = read_object(self.path)
        if problem:
            kept = set_aside(self.path)
            self.notices.append(f"The settings file could not be read ({problem}), so defaults are used. {kept}")
        return data

    def _section(self, name: str, section: Any, data: Any) -> Any:
        try:
            value, bad = section.read(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.notices.append(f"The settings under “{name}” could not be read and are back at their defaults.")
            return section()
        if bad:
            keys = ", ".join(f"{name}.{key}" for key in bad)
            self.notices.append(f"Not usable in the settings file, and back at the default: {keys}.")
        return value


def read_object(path: Path) -> tuple[dict[str, Any], str]:
    """What the JSON file holds, and why it could not be read; both are empty where there is no file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        return {}, str(error)
    return (data, "") if isinstance(data, dict) else ({}, "it holds no sections")


def set_aside(path: Path) -> str:
    """Give a file that cannot be used another name, so that it is not written over; says which."""
    aside = path.with_name(time.strftime(f"{path.stem}.broken-%Y%m%d-%H%M%S{path.suffix}"))
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"It could not be set aside either ({error})."
    return f"It was kept as {aside.name} in {path.parent}."


def write_json(path: Path, data: Any) -> None:
    """Write `data` to `path` in one step. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, path)
