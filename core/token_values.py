"""Settings that are made of token ids: which shapes each kind takes, and the ids in them. Knows no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

Form = Literal["ids", "phrases", "biases", "decay", "alternatives"]

HIGHEST = 2**31 - 1
"""No vocabulary is larger."""

SHAPES: dict[Form, str] = {
    "ids": "a token id or a list of token ids",
    "phrases": "a list of phrases, each a list of token ids",
    "biases": "a list of [[token ids], bias]",
    "decay": "[number of tokens, factor]",
    "alternatives": "a list of phrases, each a list of token ids, or of lists of such as alternatives",
}


def fits(form: Form, value: Any) -> bool:
    """Whether `value` has the shape."""
    return _FITS[form](value)


def ids_in(form: Form, value: Any) -> Iterator[int]:
    """All token ids of a value that fits."""
    if form == "decay":
        return
    if form == "biases":
        value = list(value) if isinstance(value, Mapping) else [phrase for phrase, _bias in value]
    yield from _flat(value)


def _flat(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    for item in value:
        yield from _flat(item)


def is_id(value: Any) -> bool:
    """A whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HIGHEST


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _all(value: Any, each: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(each, value))


def _is_ids(value: Any) -> bool:
    return is_id(value) or _all(value, is_id)


def _is_phrase(value: Any) -> bool:
    return bool(value) and _all(value, is_id)


def _is_bias(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and _is_phrase(value[0]) and _is_number(value[1])


def _is_biases(value: Any) -> bool:
    return _all(list(value.items()) if isinstance(value, Mapping) else value, _is_bias)


def _is_decay(value: Any) -> bool:
    return _all(value, _is_number) and len(value) == 2 and is_id(value[0]) and 0 < value[1] < float("inf")


def _is_alternatives(value: Any) -> bool:
    return _all(value, lambda words: _is_phrase(words) or (bool(words) and _all(words, _is_phrase)))


_FITS: dict[Form, Callable[[Any], bool]] = {
    "ids": _is_ids,
    "phrases": lambda value: _all(value, _is_phrase),
    "biases": _is_biases,
    "decay": _is_decay,
    "alternatives": _is_alternatives,
}
