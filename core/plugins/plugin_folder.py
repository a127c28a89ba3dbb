"""The plug-in folder, and which of its files the user has switched on: by content, so that a changed file asks
again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import resources
from core.common.former_name import user_folder
from core.errors import PluginError
from core.plugins.plugin import Plugin, PluginState
from core.plugins.plugin_loading import (
    describe_entry_point,
    digest_of,
    entry_points,
    load_entry_point,
    load_file,
    read_plugin,
)
from core.system.file_writing import atomic_write

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


class PluginFolder:
    """The plug-ins of one data folder: its files, and the entry points of installed packages.

    Files are off until `switch_on` is called for their content; packages are on until they are switched off.
    """

    def __init__(self, data_folder: Path | None = None) -> None:
        self._data = user_folder("data") if data_folder is None else data_folder

    @property
    def path(self) -> Path:
        """The folder of plug-in files; it may not exist yet."""
        return self._data / FOLDER_NAME

    def scan(self) -> list[Plugin]:
        """Return all plug-ins without running any of their code; the state of those to load is `on`."""
        files, off = self._read()
        found = [self._describe(path, files.get(path.name, "")) for path in self._files()]
        packages = [describe_entry_point(point) for _kind, point in entry_points()]
        return [*found, *(one if one.key in off else replace(one, state="on") for one in packages)]

    def load(self) -> list[Plugin]:
        """Return all plug-ins; those that are on are run."""
        files, off = self._read()
        found = [
            load_file(described.path, described.digest) if described.state == "on" and described.path else described
            for described in (self._describe(path, files.get(path.name, "")) for path in self._files())
        ]
        for kind, point in entry_points():
            described = describe_entry_point(point)
            found.append(described if described.key in off else load_entry_point(kind, point))
        return found

    def switch_on(self, plugin: Plugin) -> None:
        """Allow a plug-in with its current content. Raises FileNotWrittenError, OSError."""
        files, off = self._read()
        if plugin.path is not None:
            files[plugin.key] = digest_of(read_plugin(plugin.path))
        else:
            off.discard(plugin.key)
        self._write(files, off)

    def switch_off(self, plugin: Plugin) -> None:
        """Turn a plug-in off. Raises FileNotWrittenError, OSError."""
        files, off = self._read()
        if plugin.path is not None:
            files.pop(plugin.key, None)
        else:
            off.add(plugin.key)
        self._write(files, off)

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
        plugin = Plugin(path.name, str(path), "off", path)
        try:
            digest = digest_of(read_plugin(path))
        except PluginError as error:
            return replace(plugin, state="failed", error=error)
        state: PluginState = "off" if not allowed else "on" if allowed == digest else "changed"
        return replace(plugin, state=state, digest=digest)

    def _read(self) -> tuple[dict[str, str], set[str]]:
        """Return the allowed digests by file name, and the keys of packages that are off."""
        path = self._data / STATE_NAME
        try:
            if not path.is_file() or path.stat().st_size > _MAX_STATE_BYTES:
                return {}, set()
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}, set()
        if not isinstance(stored, Mapping):
            return {}, set()
        files, off = stored.get("files"), stored.get("packages_off")
        allowed = {k: v for k, v in files.items() if isinstance(v, str)} if isinstance(files, Mapping) else {}
        return allowed, {key for key in off if isinstance(key, str)} if isinstance(off, list) else set()

    def _write(self, files: Mapping[str, str], off: set[str]) -> None:
        self._data.mkdir(parents=True, exist_ok=True)
        content = {"files": dict(sorted(files.items())), "packages_off": sorted(off)}
        with atomic_write(self._data / STATE_NAME) as part:
            part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
