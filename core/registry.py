"""Registries that fill themselves from the modules of a package: a new file is a new entry. Plug-ins add more."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar


class RegistryEntry(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...
    @property
    def order(self) -> int: ...


E = TypeVar("E", bound=RegistryEntry)


class Registry(Mapping[str, E], Generic[E]):
    """Read-only mapping name → entry, ordered by `order`; looking up an alias works, listing shows names only.

    Every module of `package` that has an attribute called `attribute` is an entry. `set_plugin_entries` adds those of
    plug-ins.
    """

    def __init__(self, package: str, attribute: str) -> None:
        self._package = package
        self._attribute = attribute
        self._entries: dict[str, E] | None = None
        self._aliases: dict[str, str] = {}
        self._plugin_entries: tuple[E, ...] = ()
        self._adapt: Callable[[E], E] = _unchanged

    def __getitem__(self, name: str) -> E:
        if not isinstance(name, str):  # requests may contain unhashable values
            raise KeyError(name)
        entries = self._load()
        return entries[self._aliases.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    @property
    def plugin_names(self) -> frozenset[str]:
        """Names of the entries that plug-ins added."""
        return frozenset(entry.name for entry in self._plugin_entries)

    def set_plugin_entries(self, entries: Iterable[E], adapt: Callable[[E], E] | None = None) -> None:
        """Replace the entries of plug-ins; `adapt` changes each entry, the program's own included.

        Iterators over the old entries remain valid. Raises ValueError if a name belongs to another entry.
        """
        added = tuple(entries)
        names = {name for entry in self._discover() for name in (entry.name, *entry.aliases)}
        for entry in added:
            if taken := next((name for name in (entry.name, *entry.aliases) if name in names), ""):
                raise ValueError(taken)
            names.update((entry.name, *entry.aliases))
        self._plugin_entries, self._adapt = added, adapt or _unchanged
        self._entries = None
        self._load()

    def _load(self) -> dict[str, E]:
        loaded = self._entries
        if loaded is None:
            every = (self._adapt(entry) for entry in (*self._discover(), *self._plugin_entries))
            found = sorted(every, key=lambda entry: (entry.order, entry.name))
            loaded = {entry.name: entry for entry in found}
            self._aliases = {alias: entry.name for entry in found for alias in entry.aliases}
            self._entries = loaded
        return loaded

    def _discover(self) -> Iterator[E]:
        package = importlib.import_module(self._package)
        for info in pkgutil.iter_modules(package.__path__):
            entry = getattr(importlib.import_module(f"{self._package}.{info.name}"), self._attribute, None)
            if entry is not None:
                yield entry


def _unchanged(entry: E) -> E:
    return entry
