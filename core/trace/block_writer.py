"""Encode events as blocks of columns: all values of a field together take a third of the space of rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress, count
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

import msgspec
import numpy as np

from decodescope.core.events import EVENTS, Event, TokenChosen
from decodescope.core.events.columns import Columns
from decodescope.core.events.tokens import details_to_columns
from decodescope.core.trace.packing import to_packable
from decodescope.core.trace.schema import RecordSchema, TypeSpec, file_name, record_schemas

PackedInts: TypeAlias = tuple[int, int, bytes]
"""Base added to each number, bytes per number, and the numbers."""
Int64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Float64Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Float32Array: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
BoolArray: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_WIDTHS = (1, 2, 4, 8)
_PROBE_LENGTH = 16
_MAX_STEP = 100
_LIMIT = 2**61


def pack_ints(values: Int64Array) -> PackedInts:
    """Pack one or more integers."""
    low, high = int(values.min()), int(values.max())
    base = min(low, 0)
    width = next(width for width in _WIDTHS if high - base < 1 << 8 * width)
    return base, width, _byte_planes((values - base if base else values).astype(f"<u{width}"))


def small_differences(values: Int64Array) -> Int64Array | None:
    """Return the differences if the numbers change in small steps but have a wide range; otherwise None."""
    first, last = int(values[0]), int(values[-1])
    if (
        len(values) < _PROBE_LENGTH
        or abs(last - first) < 256
        or np.abs(np.diff(values[:_PROBE_LENGTH])).max() >= _MAX_STEP
    ):
        return None
    if max(-int(values.min()), int(values.max())) > _LIMIT:  # larger differences could overflow
        return None
    found: Int64Array = np.diff(values)
    return found if found.max() - found.min() < 256 else None


def to_float32(values: Float64Array) -> tuple[Float32Array, BoolArray]:
    """Return the numbers in 32 bits, and which of them are unchanged by that; NaN never is."""
    with np.errstate(over="ignore"):
        short: Float32Array = values.astype(np.float32)
    return short, short == values


def pack_floats(values: Float32Array | Float64Array) -> bytes:
    """Pack numbers of 32 or 64 bits."""
    return _byte_planes(values.astype(values.dtype.newbyteorder("<")))


def _byte_planes(values: np.ndarray[Any, Any]) -> bytes:
    """Return all first bytes of little-endian numbers, then all second ones, and so on."""
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


Column: TypeAlias = object
"""A MessagePack list: the name of an encoding, and its data; None for no values."""

_encode = msgspec.msgpack.Encoder().encode
_MAX_REPEATED = 200


class BlockWriter:
    """Encodes the blocks of one file. Texts are shared: each is written once, in the first block that contains it."""

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
        """Return whether the schema contains this event."""
        return type(event) in self._kinds

    def encode_block(self, events: Sequence[Event]) -> bytes:
        """Encode a block: [number of events, new texts, doubles, index of each event's class, columns of every event
        class that occurs].
        """
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
        """Encode a sequence of values, an array of them, or many tuples in columns."""
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

    def _write_columns(self, kind: TypeSpec, columns: Columns) -> Column:
        """Encode columns exactly as the equivalent tuples would be."""
        kinds: dict[str | int, TypeSpec]
        match kind:
            case ("many", ("record", str(name))):
                kinds = {field.name: field.kind for field in self._records[name].fields}
            case ("many", ("tuple", *of)):
                kinds = dict(enumerate(of))
        parts = ["parts", *(self._write_column(one, columns.parts[place]) for place, one in kinds.items())]
        return ["many", self._write_ints(columns.lengths), parts if columns.total else None]

    def _write_optional(self, item_type: TypeSpec, values: Sequence[Any]) -> Column:
        there = [value is not None for value in values]
        return ["some", self._write_bools(there), self._write_column(item_type, list(compress(values, there)))]

    def _write_fields(self, record: RecordSchema, values: Sequence[Any]) -> Iterable[Column]:
        laid = details_to_columns(values) if record.cls is TokenChosen else {}
        for field, getter in zip(record.fields, self._getters[record.name], strict=True):
            yield self._write_column(field.kind, laid.get(field.name) or list(map(getter, values)))

    def _write_flat(self, kind: TypeSpec, values: Any) -> Column:
        """Encode values without nested ones; values that do not match their field's type are encoded one by one."""
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
        """Encode floats that fit exactly into 32 bits as such; the others as indices into the block's doubles, each
        stored once.
        """
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
        """Encode a few repeated values of several types by index, and anything else one by one."""
        apart = {id(value): value for value in values}  # lists often repeat the same few objects
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
    """Return one and the same NaN object: different NaN objects are different keys."""
    return value if value == value else math.nan


def _index_table() -> defaultdict[float, int]:
    """Return a mapping that assigns consecutive numbers to new keys, from 0."""
    return defaultdict(count().__next__)
