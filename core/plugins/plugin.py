"""Plug-ins: their files, their state, and what they add to the registries."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import PluginError
from decodescope.core.registry import RegistryEntry
from decodescope.resources.language import mark, tr

PluginKind = Literal["strategy", "processor", "cache", "drafter", "measure"]
PluginState = Literal["on", "off", "changed", "failed"]
"""`changed`: a file that differs from the one that was switched on, and is not run until it is switched on again."""
GROUPS: dict[PluginKind, str] = {
    "strategy": "decodescope.strategies",
    "processor": "decodescope.processors",
    "cache": "decodescope.caches",
    "drafter": "decodescope.drafters",
    "measure": "decodescope.measures",
}
"""Entry-point group of each kind."""
ATTRIBUTES: dict[str, PluginKind] = {
    "STRATEGY": "strategy",
    "PROCESSOR": "processor",
    "BACKEND": "cache",
    "DRAFTER": "drafter",
    "MEASURE": "measure",
}
"""Name of a module's attribute that contains an entry."""
KIND_TITLES: dict[PluginKind, str] = {
    "strategy": mark("Strategy"),
    "processor": mark("Processor"),
    "cache": mark("Cache"),
    "drafter": mark("Drafter"),
    "measure": mark("Text measure"),
}


class PluginEntry(NamedTuple):
    """One thing that a plug-in adds to a registry."""

    kind: PluginKind
    value: RegistryEntry
    """An entry of the registry of its kind, checked."""

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.value.name

    @property
    def title(self) -> str:
        """Title shown to the user."""
        parameter = getattr(self.value, "parameter", None)
        return str(getattr(self.value, "title", "") or getattr(parameter, "title", "") or self.name)


@plain(frozen=True)
class Plugin:
    """One plug-in: a file of the plug-in folder, a `custom_generate` folder, or an entry point of a package."""

    key: str
    """Identifies it in the list of what is on: the file's name, the folder's path, or package and entry point."""
    source: str
    """Where it comes from: the file's path, or the package with its version."""
    state: PluginState
    path: Path | None = None
    """The file, in a `custom_generate` folder the one with the function; None for packages."""
    digest: str = ""
    """SHA-256 of the content of the file or folder."""
    summary: str = ""
    """First sentence of its docstring."""
    entries: tuple[PluginEntry, ...] = ()
    error: PluginError | None = None
    folder: Path | None = None
    """The folder that contains `custom_generate`."""
    own_title: str = ""
    notice: str = ""
    """Something to change in a plug-in that works."""

    @property
    def title(self) -> str:
        """Name shown to the user: the file without its suffix, the folder, or the entry point."""
        if self.own_title:
            return self.own_title
        return self.path.stem if self.path is not None else self.key.rpartition(": ")[2]

    @property
    def contents(self) -> str:
        """Names of what it adds: `Processor “Ban vowels”`."""
        return ", ".join(
            tr("{kind} “{title}”").format(kind=tr(KIND_TITLES[entry.kind]), title=tr(entry.title))
            for entry in self.entries
        )
