"""Convert numbers and arrays of NumPy and torch to Python's own. Imports neither library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from decodescope.resources.language import mark

_PLAIN_TYPES = (str, bool, int, float, bytes, type(None))


def to_plain_value(value: Any) -> Any:
    """Return `value` with every NumPy or torch number as a Python number, and every array as a list.

    Lists, tuples, sets and mappings are converted recursively. The same object is returned if nothing had to be
    converted; other objects are returned unchanged.
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
    """Return whether `kind` is a NumPy scalar or array, or a tensor.

    A library that is not imported cannot be the source of a value. Another thread may be importing it at this moment.
    """
    names = (("numpy", "generic"), ("numpy", "ndarray"), ("torch", "Tensor"))
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in names)
    return any(isinstance(one, type) and issubclass(kind, one) for one in kinds)


def _array_to_list(value: Any) -> Any:
    """Return the Python number or nested list; the value itself if it has none (a tensor without data)."""
    try:
        return value.tolist()
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return value


TokenIdForm = Literal["ids", "phrases", "biases", "decay", "alternatives"]

MAX_TOKEN_ID = 2**31 - 1
"""Larger than any vocabulary."""

FORM_DESCRIPTIONS: dict[TokenIdForm, str] = {
    "ids": mark("a token id or a list of token ids"),
    "phrases": mark("a list of phrases, each a list of token ids"),
    "biases": mark("a list of [[token ids], bias]"),
    "decay": mark("[number of tokens, factor]"),
    "alternatives": mark("a list of phrases (lists of token ids), or of lists of alternative phrases"),
}


def has_form(form: TokenIdForm, value: object) -> bool:
    """Return whether `value` has the form."""
    return _FORM_CHECKS[form](value)


def ids_in(form: TokenIdForm, value: object) -> Iterator[int]:
    """Yield all token ids of a valid value."""
    if form == "decay":
        return
    if form == "biases":
        value = [phrase for phrase, _bias in _bias_pairs(value)]
    yield from _flat_ids(value)


def _bias_pairs(value: object) -> list[tuple[object, object]]:
    """Return the (phrase, bias) pairs of biases in either form."""
    if isinstance(value, Mapping):
        return list(value.items())
    return [(pair[0], pair[1]) for pair in value] if isinstance(value, (list, tuple)) else []


def _flat_ids(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat_ids(item)


def is_id(value: object) -> bool:
    """Return whether `value` is a non-negative integer in the range of token ids."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKEN_ID


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _is_sequence_of(value: object, is_item: Callable[[object], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(is_item, value))


def _is_ids(value: object) -> bool:
    return is_id(value) or _is_sequence_of(value, is_id)


def _is_phrase(value: object) -> bool:
    return bool(value) and _is_sequence_of(value, is_id)


def _is_bias(value: object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and _is_phrase(value[0]) and _is_number(value[1])


def _is_biases(value: object) -> bool:
    return _is_sequence_of(list(value.items()) if isinstance(value, Mapping) else value, _is_bias)


def _is_decay(value: object) -> bool:
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not _is_sequence_of(value, _is_number):
        return False
    return is_id(value[0]) and 0 < value[1] < float("inf")


def _is_alternatives(value: object) -> bool:
    return _is_sequence_of(
        value, lambda words: _is_phrase(words) or (bool(words) and _is_sequence_of(words, _is_phrase))
    )


_FORM_CHECKS: dict[TokenIdForm, Callable[[object], bool]] = {
    "ids": _is_ids,
    "phrases": lambda value: _is_sequence_of(value, _is_phrase),
    "biases": _is_biases,
    "decay": _is_decay,
    "alternatives": _is_alternatives,
}
