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
from core.events.columns import Columns
from core.events.tokens import details_to_columns
from core.trace.packing import to_packable
from core.trace.schema import RecordSchema, TypeSpec, file_name, record_schemas

PackedInts: TypeAlias = tuple[int, int, bytes]
"""What is added to each number, bytes of a number, and the numbers."""
Int64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Float64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Float32Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
BoolArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_WIDTHS = (1, 2, 4, 8)
_PROBE_LENGTH = 16
_MAX_STEP = 100
_LIMIT = 2**61


def pack_ints(values: Int64Array) -> PackedInts:
    """One number or more."""
    low, high = int(values.min()), int(values.max())
    base = min(low, 0)
    width = next(width for width in _WIDTHS if high - base < 1 << 8 * width)
    return base, width, _byte_planes((values - base if base else values).astype(f"<u{width}"))


def small_differences(values: Int64Array) -> Int64Array | None:
    """The differences, where the numbers climb or fall by little and are too many for a byte; else None."""
    first, last = int(values[0]), int(values[-1])
    if (
        len(values) < _PROBE_LENGTH
        or abs(last - first) < 256
        or np.abs(np.diff(values[:_PROBE_LENGTH])).max() >= _MAX_STEP
    ):
        return None
    if max(-int(values.min()), int(values.max())) > _LIMIT:  # differences that do not fit would come round again
        return None
    found: Int64Array = np.diff(values)
    return found if found.max() - found.min() < 256 else None


def to_float32(values: Float64Array) -> tuple[Float32Array, BoolArray]:
    """The numbers in 32 bits, and which of them are the same there; one that is not a number never is."""
    with np.errstate(over="ignore"):
        short: Float32Array = values.astype(np.float32)
    return short, short == values


def pack_floats(values: Float32Array | Float64Array) -> bytes:
    """Numbers of 32 or 64 bits."""
    return _byte_planes(values.astype(values.dtype.newbyteorder("<")))


def _byte_planes(values: np.ndarray[Any, Any]) -> bytes:
    """All first bytes of little-endian numbers, then all second ones …"""
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


Column: TypeAlias = object
"""A list that MessagePack can write: a word that says how, and what that needs; None for no values at all."""

_encode = msgspec.msgpack.Encoder().encode
_MAX_REPEATED = 200


class BlockWriter:
    """Makes the blocks of one file, which share their texts: each is written once, in the block that has it first."""

    def __init__(self) -> None:
        self._kinds = {cls: number for number, cls in enumerate(EVENTS)}
        self._records = record_schemas()
        self._texts: dict[str, int] = {}
        self._new_texts: list[str] = []
        self._doubles = _index_table()
        self._getters = {
            name: [attrgetter(field.name) for field in record.fields] for name, record in self._records.items()
        }

    def can_write(self, event: Event) -> bool:
        """Whether the schema has this event."""
        return type(event) in self._kinds

    def encode_block(self, events: Sequence[Event]) -> bytes:
        """[number of events, new texts, doubles, which event each is, columns of every event that occurs]."""
        self._new_texts, self._doubles = [], _index_table()
        order = [self._kinds[type(event)] for event in events]
        tables = []
        for cls, number in self._kinds.items():
            if rows := [event for event in events if type(event) is cls]:
                tables.append([number, self._write_column(("record", file_name(cls)), rows)])
        doubles = pack_floats(np.fromiter(self._doubles, np.float64, len(self._doubles)))
        texts = [to_packable(text) for text in self._new_texts]
        return _encode([len(events), texts, doubles, self._write_ints(order), tables])

    def _write_column(self, kind: TypeSpec, values: Any) -> Column:
        """Of a sequence of values, of an array of them, or of many tuples laid out."""
        if isinstance(values, Columns):
            return self._write_columns(kind, values)
        if not len(values):
            return None
        match kind:
            case ("optional", of):
                return self._write_optional(of, values)
            case ("many", of) if _all_are(tuple, values):
                return [
                    "many",
                    self._write_ints(list(map(len, values))),
                    self._write_column(of, list(chain.from_iterable(values))),
                ]
            case ("tuple", *of) if _all_are(tuple, values) and set(map(len, values)) == {len(of)}:
                return [
                    "parts",
                    *(self._write_column(one, list(map(itemgetter(n), values))) for n, one in enumerate(of)),
                ]
            case ("record", str(name)) if _all_are(self._records[name].cls, values):
                return ["parts", *self._write_fields(self._records[name], values)]
        return self._write_flat(kind, values)

    def _write_columns(self, kind: TypeSpec, laid: Columns) -> Column:
        """As the same tuples one by one would be written."""
        kinds: dict[str | int, TypeSpec]
        match kind:
            case ("many", ("record", str(name))):
                kinds = {field.name: field.kind for field in self._records[name].fields}
            case ("many", ("tuple", *of)):
                kinds = dict(enumerate(of))
        parts = ["parts", *(self._write_column(one, laid.parts[place]) for place, one in kinds.items())]
        return ["many", self._write_ints(laid.lengths), parts if laid.total else None]

    def _write_optional(self, of: TypeSpec, values: Sequence[Any]) -> Column:
        there = [value is not None for value in values]
        return ["some", self._write_bools(there), self._write_column(of, list(compress(values, there)))]

    def _write_fields(self, record: RecordSchema, values: Sequence[Any]) -> Iterable[Column]:
        laid = details_to_columns(values) if record.cls is TokenChosen else {}
        for field, getter in zip(record.fields, self._getters[record.name], strict=True):
            yield self._write_column(field.kind, laid.get(field.name) or list(map(getter, values)))

    def _write_flat(self, kind: TypeSpec, values: Any) -> Column:
        """Values that hold no others; and, each by itself, whatever is not what its field says."""
        if isinstance(values, np.ndarray):
            return self._write_floats(values) if kind == "float" else self._write_ints(values)
        if kind == "float" and _all_are(float, values):
            return self._write_floats(values)
        if kind == "int" and _all_are(int, values):
            return self._write_ints(values)
        if kind == "bool" and _all_are(bool, values):
            return self._write_bools(values)
        if (kind == "str" or kind[0] == "choice") and _all_are(str, values):
            return self._write_strings(values)
        return self._write_mixed(values)

    def _write_ints(self, values: Any) -> Column:
        try:
            whole: Int64Array = np.asarray(values, dtype=np.int64)
        except OverflowError:
            return ["each", list(map(to_packable, values))]
        if (whole == whole[0]).all():
            return ["same", int(whole[0])]
        differences = small_differences(whole)
        if differences is not None:
            return ["steps", int(whole[0]), *pack_ints(differences)]
        return ["ints", *pack_ints(whole)]

    def _write_bools(self, values: Any) -> Column:
        truths: BoolArray = np.asarray(values, dtype=np.bool_)
        return ["same", bool(truths[0])] if (truths == truths[0]).all() else ["bools", truths.tobytes()]

    def _write_strings(self, values: Sequence[str]) -> Column:
        known = self._texts
        if values.count(values[0]) == len(values):
            return ["same", to_packable(values[0])]
        for text in dict.fromkeys(values):
            if text not in known:
                known[text] = len(known)
                self._new_texts.append(text)
        return ["texts", self._write_ints(list(map(known.__getitem__, values)))]

    def _write_floats(self, values: Any) -> Column:
        """In 32 bits those that are the same there; the others as places among the block's doubles, each kept once."""
        wide: Float64Array = np.asarray(values, dtype=np.float64)
        short, exact = to_float32(wide)
        if exact.all():
            bits = short.view(np.uint32)
            return ["same", float(wide[0])] if (bits == bits[0]).all() else ["floats", pack_floats(short)]
        others = wide[~exact]
        listed = map(_canonical_nan, others.tolist()) if np.isnan(others).any() else others.tolist()
        places = np.fromiter(map(self._doubles.__getitem__, listed), np.int64, len(others))
        return [
            "doubles",
            self._write_bools(exact),
            pack_floats(short[exact]),
            self._write_ints(np.diff(places, prepend=0)),
        ]

    def _write_mixed(self, values: Sequence[object]) -> Column:
        """A few numbers and texts of several types, again and again; or whatever there is."""
        apart = {id(value): value for value in values}  # a list repeats a few objects more often than equal ones
        if all(type(value) in (int, float, bool, str) for value in apart.values()):
            places: dict[object, int] = {}
            keys = {one: (type(value), repr(value)) for one, value in apart.items()}
            order = [places.setdefault(keys[id(value)], len(places)) for value in values]
            if len(places) <= _MAX_REPEATED:
                first = {place: value for place, value in zip(reversed(order), reversed(values), strict=True)}
                return ["of", [to_packable(first[place]) for place in range(len(places))], self._write_ints(order)]
        return ["each", list(map(to_packable, values))]


def _all_are(cls: type, values: Iterable[object]) -> bool:
    return set(map(type, values)) == {cls}


def _canonical_nan(value: float) -> float:
    """What is no number is not even the same as itself, unless it is the same object."""
    return value if value == value else math.nan


def _index_table() -> defaultdict[float, int]:
    """Gives each new key the next number, from 0."""
    return defaultdict(count().__next__)
