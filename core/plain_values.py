"""Convert numbers and arrays of NumPy and torch to Python's own. Imports neither library."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_PLAIN_TYPES = (str, bool, int, float, bytes, type(None))


def to_plain_value(value: Any) -> Any:
    """Return `value` with every NumPy or torch number as a Python number, and every array as lists of them.

    Lists, tuples, sets and mappings are converted with all they contain. The same object is returned where nothing had
    to be converted; other objects are returned as they are.
    """
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return value
    if _is_array_type(kind):
        return _array_to_list(value)
    if kind in (list, tuple, set, frozenset):
        if all(type(item) in _PLAIN_TYPES for item in value):
            return value
        return _convert_items(value, kind)
    if isinstance(value, Mapping):
        items = [(to_plain_value(key), to_plain_value(item)) for key, item in value.items()]
        is_plain = all(
            key is old_key and item is old
            for (key, item), (old_key, old) in zip(items, value.items(), strict=True)
        )  # fmt: skip
        return value if is_plain else dict(items)
    return value


def _convert_items(value: Any, kind: type) -> Any:
    items = [to_plain_value(item) for item in value]
    return value if all(item is old for item, old in zip(items, value, strict=True)) else kind(items)


def _is_array_type(kind: type) -> bool:
    """Whether it is a scalar or an array of NumPy, or a tensor.

    No value comes from a library that is not imported. Another thread may be importing it at this moment.
    """
    names = (("numpy", "generic"), ("numpy", "ndarray"), ("torch", "Tensor"))
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in names)
    return any(isinstance(one, type) and issubclass(kind, one) for one in kinds)


def _array_to_list(value: Any) -> Any:
    """The Python number, or the nested list; the value itself where it has none (a tensor without data)."""
    try:
        return value.tolist()
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return value
