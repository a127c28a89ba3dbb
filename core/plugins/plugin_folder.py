"""The plug-in folder, and which of its files the user has switched on: by content, so that a changed file must
be approved again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from decodescope import resources
from decodescope.core.common.program_name import user_folder
from decodescope.core.errors import PluginError
from decodescope.core.plugins.generate_folder import find_generate_folder, read_folder
from decodescope.core.plugins.plugin import Plugin
from decodescope.core.plugins.plugin_loading import (
    describe_entry_point,
    describe_folder,
    digest_of,
    entry_points,
    load_entry_point,
    load_file,
    load_folder,
    read_plugin,
    source_of,
    state_of,
)
from decodescope.core.system.file_writing import atomic_write

TemplateKind = Literal["strategy", "processor"]
_NUMBERED_NAMES = {
    "MyProcessor": "MyProcessor{number}",
    "My processor": "My processor {number}",
    "my_strategy": "my_strategy_{number}",
    "My strategy": "My strategy {number}",
}
"""Names in the templates, which must differ between files."""
FOLDER_NAME, STATE_NAME = "plugins", "plugins.json"
MAX_FILES = 200
_MAX_STATE_BYTES = 1_000_000


class _Decisions(NamedTuple):
    """Decisions of the user, as the state file stores them."""

    files: dict[str, str]
    """Digests that may run, by file name."""
    folders: dict[str, str]
    """Digests that may run, by path of a `custom_generate` folder; empty for one that is off."""
    off: set[str]
    """Keys of packages that are off."""


class PluginFolder:
    """The plug-ins of one data folder: its files, `custom_generate` folders anywhere, and the entry points of installed
    packages.

    Files and folders are off until `switch_on` is called for their content; packages are on until they are switched
    off.
    """

    def __init__(self, data_folder: Path | None = None) -> None:
        self._data = user_folder("data") if data_folder is None else data_folder

    @property
    def path(self) -> Path:
        """The folder of plug-in files; it may not exist yet."""
        return self._data / FOLDER_NAME

    def scan(self) -> list[Plugin]:
        """Return all plug-ins without running any of their code; the state of those to load is `on`."""
        known = self._read()
        found = [self._describe(path, known.files.get(path.name, "")) for path in self._files()]
        found += [describe_folder(Path(path), digest) for path, digest in known.folders.items()]
        packages = [describe_entry_point(point) for _kind, point in entry_points()]
        return [*found, *(one if one.key in known.off else replace(one, state="on") for one in packages)]

    def load(self) -> list[Plugin]:
        """Return all plug-ins; those that are on are run."""
        found = [self._load(described) for described in self.scan() if described.path is not None]
        off = self._read().off
        for kind, point in entry_points():
            described = describe_entry_point(point)
            found.append(described if described.key in off else load_entry_point(kind, point))
        return found

    @staticmethod
    def _load(described: Plugin) -> Plugin:
        """Run a file or folder that is on."""
        if described.state != "on" or described.path is None:
            return described
        if described.folder is not None:
            return load_folder(described.folder, described.digest)
        return load_file(described.path, described.digest)

    def add_folder(self, path: Path) -> Plugin:
        """Add a `custom_generate` folder, switch it on with its current content and return it; the user has agreed.
        Raises PluginError without `custom_generate/generate.py`, FileNotWrittenError, OSError.
        """
        source = read_folder(find_generate_folder(path))
        known = self._read()
        known.folders[str(source.folder)] = source.digest
        self._write(known)
        return describe_folder(source.folder, source.digest)

    def remove_folder(self, plugin: Plugin) -> None:
        """Forget a `custom_generate` folder; its files are not changed. Raises FileNotWrittenError, OSError."""
        known = self._read()
        known.folders.pop(plugin.key, None)
        self._write(known)

    def switch_on(self, plugin: Plugin) -> None:
        """Allow a plug-in with its current content. Raises FileNotWrittenError, OSError."""
        known = self._read()
        if plugin.folder is not None:
            known.folders[plugin.key] = read_folder(plugin.folder).digest
        elif plugin.path is not None:
            known.files[plugin.key] = digest_of(read_plugin(plugin.path))
        else:
            known.off.discard(plugin.key)
        self._write(known)

    def switch_off(self, plugin: Plugin) -> None:
        """Turn a plug-in off. Raises FileNotWrittenError, OSError."""
        known = self._read()
        if plugin.folder is not None:
            known.folders[plugin.key] = ""
        elif plugin.path is not None:
            known.files.pop(plugin.key, None)
        else:
            known.off.add(plugin.key)
        self._write(known)

    def create(self, kind: TemplateKind) -> Plugin:
        """Write a working template as a new file, switch it on and return it. Raises FileNotWrittenError, OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        number = 1
        while (path := self.path / f"my_{kind}{f'_{number}' if number > 1 else ''}.py").exists():
            number += 1
        content = resources.path("plugins", f"{kind}.py").read_text(encoding="utf-8")
        for name, numbered in _NUMBERED_NAMES.items() if number > 1 else ():
            content = content.replace(name, numbered.format(number=number))
        with atomic_write(path) as part:
            part.write_text(content, encoding="utf-8")
        created = self._describe(path, "")
        self.switch_on(created)
        return replace(created, state="on")

    def _files(self) -> list[Path]:
        try:
            names = sorted(path for path in self.path.iterdir() if path.suffix == ".py" and path.name[0] not in "._")
        except OSError:
            return []
        return names[:MAX_FILES]

    @staticmethod
    def _describe(path: Path, allowed: str) -> Plugin:
        plugin = Plugin(path.name, source_of(path), "off", path)
        try:
            digest = digest_of(read_plugin(path))
        except PluginError as error:
            return replace(plugin, state="failed", error=error)
        return replace(plugin, state=state_of(digest, allowed), digest=digest)

    def _read(self) -> _Decisions:
        path = self._data / STATE_NAME
        try:
            if not path.is_file() or path.stat().st_size > _MAX_STATE_BYTES:
                return _Decisions({}, {}, set())
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return _Decisions({}, {}, set())
        if not isinstance(stored, Mapping):
            return _Decisions({}, {}, set())
        off = stored.get("packages_off")
        listed = off if isinstance(off, list) else []
        return _Decisions(
            _texts(stored.get("files")), _texts(stored.get("folders")), {key for key in listed if isinstance(key, str)}
        )

    def _write(self, known: _Decisions) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        content = {
            "files": dict(sorted(known.files.items())), "folders": known.folders, "packages_off": sorted(known.off),
        }  # fmt: skip
        with atomic_write(self._data / STATE_NAME) as part:
            part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _texts(value: object) -> dict[str, str]:
    """Return the texts of a mapping by name; empty for anything else."""
    if not isinstance(value, Mapping):
        return {}
    return {key: text for key, text in value.items() if isinstance(key, str) and isinstance(text, str)}
