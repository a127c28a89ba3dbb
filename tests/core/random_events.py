"""Random events of every class, generated from the type annotations of their fields."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from decodescope.core import events
from decodescope.core.trace.schema import RecordSchema, TypeSpec, record_schemas

TEXTS = st.text(st.characters(exclude_categories=()), max_size=6)
"""Lone surrogates too: a prompt may be cut between the two halves of a character."""
FLOATS = st.one_of(
    st.floats(), st.floats(width=32), st.sampled_from([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 5e-324])
)
INTS = st.one_of(st.integers(0, 40), st.integers())
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), INTS, FLOATS, TEXTS, st.binary(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=3),
        st.dictionaries(st.one_of(INTS, st.tuples(INTS, INTS)), inner, max_size=2),
    ),
    max_leaves=6,
)
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    "int": INTS, "float": FLOATS, "bool": st.booleans(), "str": TEXTS, "any": PLAIN,
}  # fmt: skip


def random_value(kind: TypeSpec, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type; deeper lists are shorter."""
    match kind:
        case str():
            return _SIMPLE[kind]
        case ("choice", *names):
            return st.sampled_from(names)
        case ("optional", of):
            return st.none() | random_value(of, depth)
        case ("many", of):
            return st.lists(random_value(of, depth + 1), max_size=max(0, 4 - depth)).map(tuple)
        case ("tuple", *of):
            return st.tuples(*(random_value(one, depth) for one in of))
        case ("record", str(name)):
            return random_record(record_schemas()[name], depth)
        case ("union", *names):
            return _one_of(*map(str, names))
    raise AssertionError(kind)


@cache
def _one_of(*names: str) -> st.SearchStrategy[Any]:
    """Terms: they hold each other, so that there is one strategy for all of them."""
    return st.deferred(lambda: st.one_of(*(random_record(record_schemas()[name], 2) for name in names)))


def random_record(record: RecordSchema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Objects of a class."""
    return st.builds(record.cls, **{field.name: random_value(field.kind, depth) for field in record.fields})


def random_event(name: str) -> st.SearchStrategy[Any]:
    """Events of the class with this name."""
    return random_record(record_schemas()[name])


NAMES = [cls.__name__ for cls in events.EVENTS]
EVENTS = st.sampled_from(NAMES).flatmap(random_event)
