"""Events to blocks of columns: all values of a field together, which takes a third of the room that rows would."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress, count
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np

from core.events import EVENTS, Event, TokenChosen
from core.events.laid import Laid
from core.events.tokens import lay_out
from core.trace import byte_planes
from core.trace.packing import packable
from core.trace.schema import Kind, RecordSchema, file_name, records

Column: TypeAlias = object
"""A list that MessagePack can write: a word that says how, and what that needs; None for no values at all."""

_encode = msgspec.msgpack.Encoder().encode
_FEW = 200


class BlockWriter:
    """Makes the blocks of one file, which share their texts: each is written once, in the block that has it first."""

    def __init__(self) -> None:
        self._kinds = {cls: number for number, cls in enumerate(EVENTS)}
        self._records = records()
        self._texts: dict[str, int] = {}
        self._fresh: list[str] = []
        self._doubles = _numbered()
        self._getters = {
            name: [attrgetter(field.name) for field in record.fields] for name, record in self._records.items()
        }

    def knows(self, event: Event) -> bool:
        """Whether the schema has this event."""
        return type(event) in self._kinds

    def block(self, events: Sequence[Event]) -> bytes:
        """[number of events, new texts, doubles, which event each is, columns of every event that occurs]."""
        self._fresh, self._doubles = [], _numbered()
        order = [self._kinds[type(event)] for event in events]
        tables = []
        for cls, number in self._kinds.items():
            if rows := [event for event in events if type(event) is cls]:
                tables.append([number, self._column(("record", file_name(cls)), rows)])
        doubles = byte_planes.pack_floats(np.fromiter(self._doubles, np.float64, len(self._doubles)))
        texts = [packable(text) for text in self._fresh]
        return _encode([len(events), texts, doubles, self._ints(order), tables])

    def _column(self, kind: Kind, values: Any) -> Column:
        """Of a sequence of values, of an array of them, or of many tuples laid out."""
        if isinstance(values, Laid):
            return self._laid(kind, values)
        if not len(values):
            return None
        match kind:
            case ("optional", of):
                return self._optional(of, values)
            case ("many", of) if _all_are(tuple, values):
                return ["many", self._ints(list(map(len, values))), self._column(of, list(chain.from_iterable(values)))]
            case ("tuple", *of) if _all_are(tuple, values) and set(map(len, values)) == {len(of)}:
                return ["parts", *(self._column(one, list(map(itemgetter(n), values))) for n, one in enumerate(of))]
            case ("record", str(name)) if _all_are(self._records[name].cls, values):
                return ["parts", *self._fields(self._records[name], values)]
        return self._plain(kind, values)

    def _laid(self, kind: Kind, laid: Laid) -> Column:
        """As the same tuples one by one would be written."""
        kinds: dict[str | int, Kind]
        match kind:
            case ("many", ("record", str(name))):
                kinds = {field.name: field.kind for field in self._records[name].fields}
            case ("many", ("tuple", *of)):
                kinds = dict(enumerate(of))
        parts = ["parts", *(self._column(one, laid.parts[place]) for place, one in kinds.items())]
        return ["many", self._ints(laid.lengths), parts if laid.total else None]

    def _optional(self, of: Kind, values: Sequence[Any]) -> Column:
        there = [value is not None for value in values]
        return ["some", self._bools(there), self._column(of, list(compress(values, there)))]

    def _fields(self, record: RecordSchema, values: Sequence[Any]) -> Iterable[Column]:
        laid = lay_out(values) if record.cls is TokenChosen else {}
        for field, getter in zip(record.fields, self._getters[record.name], strict=True):
            yield self._column(field.kind, laid.get(field.name) or list(map(getter, values)))

    def _plain(self, kind: Kind, values: Any) -> Column:
        """Values that hold no others; and, each by itself, whatever is not what its field says."""
        if isinstance(values, np.ndarray):
            return self._floats(values) if kind == "float" else self._ints(values)
        if kind == "float" and _all_are(float, values):
            return self._floats(values)
        if kind == "int" and _all_are(int, values):
            return self._ints(values)
        if kind == "bool" and _all_are(bool, values):
            return self._bools(values)
        if (kind == "str" or kind[0] == "choice") and _all_are(str, values):
            return self._strings(values)
        return self._mixed(values)

    def _ints(self, values: Any) -> Column:
        try:
            whole: byte_planes.Whole = np.asarray(values, dtype=np.int64)
        except OverflowError:
            return ["each", list(map(packable, values))]
        if (whole == whole[0]).all():
            return ["same", int(whole[0])]
        differences = byte_planes.steps(whole)
        if differences is not None:
            return ["steps", int(whole[0]), *byte_planes.pack_ints(differences)]
        return ["ints", *byte_planes.pack_ints(whole)]

    def _bools(self, values: Any) -> Column:
        truths: byte_planes.Truths = np.asarray(values, dtype=np.bool_)
        return ["same", bool(truths[0])] if (truths == truths[0]).all() else ["bools", truths.tobytes()]

    def _strings(self, values: Sequence[str]) -> Column:
        known = self._texts
        if values.count(values[0]) == len(values):
            return ["same", packable(values[0])]
        for text in dict.fromkeys(values):
            if text not in known:
                known[text] = len(known)
                self._fresh.append(text)
        return ["texts", self._ints(list(map(known.__getitem__, values)))]

    def _floats(self, values: Any) -> Column:
        """In 32 bits those that are the same there; the others as places among the block's doubles, each kept once."""
        wide: byte_planes.Wide = np.asarray(values, dtype=np.float64)
        short, exact = byte_planes.narrowed(wide)
        if exact.all():
            bits = short.view(np.uint32)
            return ["same", float(wide[0])] if (bits == bits[0]).all() else ["floats", byte_planes.pack_floats(short)]
        others = wide[~exact]
        listed = map(_one_nan, others.tolist()) if np.isnan(others).any() else others.tolist()
        places = np.fromiter(map(self._doubles.__getitem__, listed), np.int64, len(others))
        return [
            "doubles",
            self._bools(exact),
            byte_planes.pack_floats(short[exact]),
            self._ints(np.diff(places, prepend=0)),
        ]

    def _mixed(self, values: Sequence[object]) -> Column:
        """A few numbers and texts of several types, again and again; or whatever there is."""
        apart = {id(value): value for value in values}  # a list repeats a few objects more often than equal ones
        if all(type(value) in (int, float, bool, str) for value in apart.values()):
            places: dict[object, int] = {}
            keys = {one: (type(value), repr(value)) for one, value in apart.items()}
            order = [places.setdefault(keys[id(value)], len(places)) for value in values]
            if len(places) <= _FEW:
                first = {place: value for place, value in zip(reversed(order), reversed(values), strict=True)}
                return ["of", [packable(first[place]) for place in range(len(places))], self._ints(order)]
        return ["each", list(map(packable, values))]


def _all_are(cls: type, values: Iterable[object]) -> bool:
    return set(map(type, values)) == {cls}


def _one_nan(value: float) -> float:
    """What is no number is not even the same as itself, unless it is the same object."""
    return value if value == value else math.nan


def _numbered() -> defaultdict[float, int]:
    """Gives each new key the next number, from 0."""
    return defaultdict(count().__next__)
