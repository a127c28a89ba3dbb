"""What two windows have changed since they read the same file, put together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_ABSENT = object()


def merge_settings(
    base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], unordered_keys: Collection[str] = ()
) -> dict[str, Any]:
    """`theirs` with every change that `mine` has made since `base`; where both changed one value, it is mine.

    Groups are gone into; of a list under a name in `unordered_keys`, what either has added or removed counts entry by entry.
    """
    names = [*theirs, *(name for name in mine if name not in theirs)]
    found = {name: _merge_value(name, base, mine, theirs, unordered_keys) for name in names}
    return {name: value for name, value in found.items() if value is not _ABSENT}


def _merge_value(
    name: str, base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], sets: Collection[str]
) -> Any:
    was, own, other = (side.get(name, _ABSENT) for side in (base, mine, theirs))
    if own == was:
        return other
    if isinstance(own, Mapping) and isinstance(other, Mapping):
        return merge_settings(was if isinstance(was, Mapping) else {}, own, other, sets)
    if name in sets and isinstance(own, list) and isinstance(other, list):
        return _merge_lists(was if isinstance(was, list) else [], own, other)
    return own


def _merge_lists(base: list[Any], mine: list[Any], theirs: list[Any]) -> list[Any]:
    kept = [entry for entry in theirs if entry in mine or entry not in base]
    return kept + [entry for entry in mine if entry not in kept and entry not in base]
