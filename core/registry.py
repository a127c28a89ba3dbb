"""Registries that fill themselves from the modules of a package: a new file is a new entry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
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

    Every module of `package` that has an attribute called `attribute` is an entry.
    """

    def __init__(self, package: str, attribute: str) -> None:
        self._package = package
        self._attribute = attribute
        self._entries: dict[str, E] | None = None
        self._aliases: dict[str, str] = {}

    def __getitem__(self, name: str) -> E:
        if not isinstance(name, str):  # requests may contain unhashable values
            raise KeyError(name)
        entries = self._load()
        return entries[self._aliases.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def _load(self) -> dict[str, E]:
        if self._entries is None:
            found = sorted(self._discover(), key=lambda entry: (entry.order, entry.name))
            self._entries = {entry.name: entry for entry in found}
            self._aliases = {alias: entry.name for entry in found for alias in entry.aliases}
        return self._entries

    def _discover(self) -> Iterator[E]:
        package = importlib.import_module(self._package)
        for info in pkgutil.iter_modules(package.__path__):
            entry = getattr(importlib.import_module(f"{self._package}.{info.name}"), self._attribute, None)
            if entry is not None:
                yield entry
