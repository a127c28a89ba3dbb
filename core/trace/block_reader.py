"""Decode blocks of columns to events by the schema in the file; all data is validated."""

from __future__ import annotations

import sys
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, repeat
from operator import not_
from types import MemberDescriptorType
from typing import Any, TypeVar

from decodescope.core.events import Event
from decodescope.core.trace.packing import is_of_kind, unpack
from decodescope.core.trace.schema import FileLayout, TypeSpec, file_name, is_choice, record_schemas
from decodescope.core.trace.validation import ANY_LENGTH, MAX_TEXT_LENGTH, NumberRange, Ranges, check_value, range_of
from decodescope.resources.language import tr

Number = TypeVar("Number", int, float)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def unpack_ints(base: int, width: int, data: bytes) -> list[int]:
    """Unpack integers packed by `pack_ints`. Raises ValueError."""
    if width not in _CODES:
        raise ValueError(tr("integers cannot have a width of {width}").format(width=width))
    empty: array[int] = array(_CODES[width])
    values = _join_byte_planes(empty, data).tolist()
    return [value + base for value in values] if base else values


def accumulate_differences(first: int, differences: Sequence[int]) -> list[int]:
    """Return the numbers with these differences."""
    return list(accumulate(differences, initial=first))


def unpack_floats(code: str, data: bytes) -> list[float]:
    """Unpack floats of 32 bits (`f`) or 64 bits (`d`). Raises ValueError."""
    empty: array[float] = array(code)
    return _join_byte_planes(empty, data).tolist()


def _join_byte_planes(empty: array[Number], data: bytes) -> array[Number]:
    """Fill `empty` with numbers from byte planes."""
    width = empty.itemsize
    count, rest = divmod(len(data), width)
    if rest:
        raise ValueError(tr("a column of numbers ends in the middle of a number"))
    mixed = bytearray(len(data))
    for place in range(width):
        mixed[place::width] = data[place * count : (place + 1) * count]
    empty.frombytes(mixed)
    if sys.byteorder == "big":
        empty.byteswap()
    return empty


_MIN_VALUES = 2**21
_VALUES_PER_BYTE = 32
_MAX_VALUES = 2**27
"""Limits on the number of values a file may expand to. A run has about one value per byte."""
_MIN_CHARACTERS = 2**21
_CHARACTERS_PER_BYTE = 16
"""Limits on the number of characters in its texts, each counted as often as it is referenced."""
_MAX_DEPTH = 60
"""Maximum nesting of containers in a value; the writer stops at 50."""


_INTEGER_LIMIT = 2**512
"""Upper limit for integers: settings may exceed 64 bits, but Python refuses to print numbers with thousands of digits.
"""

UNKNOWN_VALUE: object = object()
"""Placeholder for a choice defined only in a later version, until its event is skipped."""


class BlockReader:
    """Reads the blocks of one file in order. Raises ValueError for data that no writer produces."""

    def __init__(self, layout: FileLayout, check_ranges: bool = False) -> None:
        """`check_ranges` rejects numbers that no run can have; the format itself allows any."""
        self._layout, self._check_ranges = layout, check_ranges
        self._texts: list[str] = []
        self._doubles: list[float] = []
        self._left, self._characters_left = _MIN_VALUES, _MIN_CHARACTERS
        self._values = 0
        self.skipped: Counter[str] = Counter()
        """Number of skipped events by class name: those unknown to this version, or with unknown values."""

    def read_block(self, data: bytes, stored_bytes: int) -> list[Event]:
        """Return the events of a block of `stored_bytes` in the file, in order."""
        self._left += stored_bytes * _VALUES_PER_BYTE
        self._characters_left += stored_bytes * _CHARACTERS_PER_BYTE
        match unpack(data):
            case [int(count), list(texts), bytes(doubles), order, list(tables)] if count > 0:
                self._count_towards_limits(len(texts))
                self._texts += _check_types("str", texts)
                self._doubles = unpack_floats("d", doubles)
                return self._events_in_order(self._read_column("int", order, count), tables)
        raise ValueError(tr("a block is not a list of five parts"))

    def _events_in_order(self, order: Sequence[int], tables: Sequence[object]) -> list[Event]:
        rows: dict[int, Iterator[Event]] = {}
        known = self._layout.events
        for table in tables:
            match table:
                case [int(number), column] if number in known and number not in rows:
                    rows[number] = iter(self._read_events(number, column, order.count(number)))
                case [int(number), _] if number in self._layout.unknown_events:
                    rows[number] = iter(())
                case _:
                    raise ValueError(tr("a block has columns of an unknown event"))
        if not rows.keys() >= set(order):
            raise ValueError(tr("a block lacks the columns of one of its events"))
        self.skipped.update(self._layout.unknown_events[number] for number in order if number not in known)
        found = [(number, next(rows[number])) for number in order if number in known]
        self.skipped.update(known[number] for number, event in found if event is UNKNOWN_VALUE)
        return [event for _, event in found if event is not UNKNOWN_VALUE]

    def _read_events(self, number: int, column: object, count: int) -> list[Event]:
        if not count:
            raise ValueError(tr("a block has columns of an event that does not occur in it"))
        return self._read_column(("record", self._layout.events[number]), column, count)

    def _read_column(self, kind: TypeSpec, column: object, count: int, allowed: Ranges | None = None) -> list[Any]:
        """Return `count` values of `kind`, with numbers in the `allowed` range."""
        self._count_towards_limits(count)
        if not count:
            return []
        values = self._read_nested(kind, column, count, allowed)
        if values is None:
            values = self._read_flat(kind, column, count)
            if len(values) != count:
                raise ValueError(tr("a column has too many or too few values"))
            self._check_values(kind, values, allowed)
        return self._mark_unknown(kind, values) if self._layout.is_later else values

    def _count_towards_limits(self, values: int, characters: int = 0) -> None:
        """Count values and characters read. Raises ValueError if they exceed the limits for the file's size."""
        self._left -= values
        self._values += values
        self._characters_left -= characters
        if self._left < 0 or self._values > _MAX_VALUES:
            raise ValueError(tr("it contains more values after decompression than a run of its size can have"))
        if self._characters_left < 0:
            raise ValueError(tr("it contains more text after decompression than a run of its size can have"))

    def _check_values(self, kind: TypeSpec, values: list[Any], allowed: Ranges | None) -> None:
        """Count nested values and check their numbers."""
        if kind in ("int", "float"):
            if isinstance(allowed, NumberRange) and self._check_ranges:
                allowed.check(values)
        elif kind == "str":
            lengths = list(map(len, values))
            self._count_towards_limits(0, sum(lengths))
            if self._check_ranges and allowed is not ANY_LENGTH and max(lengths) > MAX_TEXT_LENGTH:
                raise ValueError(tr("a text is longer than any token"))
        elif kind[0] == "choice":
            if not self._layout.is_later and not all(is_choice(kind, value) for value in set(values)):
                raise ValueError(tr("a value is not of type {kind}").format(kind=kind))
        elif kind != "bool":
            repeated = Counter(map(id, values))
            for value in {id(value): value for value in values}.values():
                self._check_container(value, repeated[id(value)], allowed)

    def _check_container(self, value: object, times: int, allowed: Ranges | None) -> None:
        values, characters = measure_value(value)
        self._count_towards_limits(values * times, characters * times)
        if not self._check_ranges:
            return
        if allowed is not None:
            check_value(value, allowed)
        check_records(value)

    def _mark_unknown(self, kind: TypeSpec, values: list[Any]) -> list[Any]:
        """Replace choices unknown to this version, and everything that contains one, by UNKNOWN_VALUE."""
        match kind:
            case ("choice", *_):
                return [value if is_choice(kind, value) else UNKNOWN_VALUE for value in values]
            case ("many" | "tuple", *_):
                return [UNKNOWN_VALUE if any(item is UNKNOWN_VALUE for item in value) else value for value in values]
            case ("record", str(name)):
                fields = [field.name for field in self._layout.field_columns[name].record.fields]
                return [row if _has_only_known_values(row, fields) else UNKNOWN_VALUE for row in values]
        return values

    def _read_nested(self, kind: TypeSpec, column: object, count: int, allowed: Ranges | None) -> list[object] | None:
        match kind, column:
            case ("optional", of), ["some", flags, rest]:
                return self._read_optional(of, self._read_column("bool", flags, count), rest, allowed)
            case ("many", of), ["many", lengths, items]:
                return self._read_tuples(of, self._read_column("int", lengths, count), items, allowed)
            case ("tuple", *of), ["parts", *parts] if len(parts) == len(of):
                ranges = allowed if isinstance(allowed, tuple) else (allowed,) * len(of)
                return list(zip(*self._read_columns(of, parts, count, ranges), strict=True))
            case ("record", str(name)), ["parts", *parts]:
                return self._read_records(name, parts, count)
        return None

    def _read_columns(
        self, kinds: Sequence[TypeSpec], parts: Sequence[object], count: int, ranges: Sequence[Ranges | None]
    ) -> Iterator[list[object]]:
        for kind, part, allowed in zip(kinds, parts, ranges, strict=True):
            yield self._read_column(kind, part, count, allowed)

    def _read_optional(
        self, item_type: TypeSpec, flags: list[bool], column: object, allowed: Ranges | None
    ) -> list[object]:
        there = iter(self._read_column(item_type, column, sum(flags), allowed))
        return _merge_by_flags(repeat(None), there, flags)

    def _read_tuples(
        self, item_type: TypeSpec, lengths: list[int], column: object, allowed: Ranges | None
    ) -> list[object]:
        if min(lengths) < 0:
            raise ValueError(tr("a list has a negative length"))
        ends = list(accumulate(lengths))
        items = tuple(self._read_column(item_type, column, ends[-1], allowed))
        return [items[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    def _read_records(self, name: str, parts: Sequence[object], count: int) -> list[object]:
        places = self._layout.field_columns.get(name)
        if places is None:
            raise ValueError(tr("the schema lacks {name}").format(name=name))
        if places.width != len(parts):
            raise ValueError(tr("{name} has too many or too few columns").format(name=name))
        rows: list[object] = list(map(object.__new__, repeat(places.record.cls, count)))
        for field, place in zip(places.record.fields, places.columns, strict=True):
            if place is None:
                values: Iterable[object] = repeat(field.default)
            else:
                values = self._read_column(field.kind, parts[place], count, range_of(name, field.name))
            _set_field(places.record.cls, field.name, rows, values)
        return rows

    def _read_flat(self, kind: TypeSpec, column: object, count: int) -> list[Any]:
        match column:
            case ["same", value]:
                _check_types(kind, [value])
                self._check_container(value, 0, None)  # rejects values nested too deeply before they are repeated
                return [value] * count
            case ["each", list(values)]:
                return _check_types(kind, values)
            case ["of", list(values), order]:
                return _select(_check_types(kind, values), self._read_column("int", order, count))
        match kind, column:
            case "int", ["ints", int(base), int(width), bytes(data)]:
                return unpack_ints(base, width, data)
            case "int", ["steps", int(first), int(base), int(width), bytes(data)]:
                return accumulate_differences(first, unpack_ints(base, width, data))
            case "bool", ["bools", bytes(data)]:
                return [byte == 1 for byte in data]
            case "float", ["floats", bytes(data)]:
                return unpack_floats("f", data)
            case "float", ["doubles", flags, bytes(data), places]:
                return self._read_floats(self._read_column("bool", flags, count), data, places)
            case "str" | ("choice", *_), ["texts", places]:
                return _select(self._texts, self._read_column("int", places, count))
        raise ValueError(tr("a column has an unknown encoding"))

    def _read_floats(self, exact: list[bool], data: bytes, places: object) -> list[float]:
        wide = sum(map(not_, exact))
        short = unpack_floats("f", data)
        if len(short) + wide != len(exact):
            raise ValueError(tr("a column has too many or too few numbers"))
        doubles = _select(self._doubles, list(accumulate(self._read_column("int", places, wide))))
        return _merge_by_flags(iter(doubles), iter(short), exact)


def measure_value(value: object, depth: int = 0) -> tuple[int, int]:
    """Return (values, characters) in a value. Raises ValueError for too deep nesting or too large numbers."""
    match value:
        case str() | bytes():
            return 1, len(value)
        case int() if abs(value) >= _INTEGER_LIMIT:
            raise ValueError(tr("an integer has too many digits"))
        case Mapping():
            parts: Iterable[object] = chain(value.keys(), value.values())
        case list() | tuple():
            parts = value
        case _ if file_name(type(value)) in record_schemas():
            parts = [getattr(value, field.name) for field in record_schemas()[file_name(type(value))].fields]
        case _:
            return 1, 0
    if depth >= _MAX_DEPTH:
        raise ValueError(tr("a value is nested too deeply"))
    weights = [measure_value(part, depth + 1) for part in parts]
    return 1 + sum(values for values, _ in weights), sum(characters for _, characters in weights)


def check_records(value: object) -> None:
    """Check the numbers of every record in a value. Raises ValueError."""
    record = record_schemas().get(file_name(type(value)))
    if record is not None and type(value) is record.cls:
        for field in record.fields:
            held = getattr(value, field.name)
            allowed = range_of(record.name, field.name)
            if allowed is not None:
                check_value(held, allowed)
            elif isinstance(held, str) and len(held) > MAX_TEXT_LENGTH:
                raise ValueError(tr("a text is longer than any token"))
            elif field.kind[0] == "choice" and not is_choice(field.kind, held):
                raise ValueError(tr("a value is not of type {kind}").format(kind=field.kind))
            else:
                check_records(held)
    elif isinstance(value, list | tuple):
        for item in value:
            check_records(item)


def _has_only_known_values(row: object, fields: Sequence[str]) -> bool:
    return row is not UNKNOWN_VALUE and not any(getattr(row, name) is UNKNOWN_VALUE for name in fields)


def _set_field(cls: type, name: str, rows: Iterable[object], values: Iterable[object]) -> None:
    """Set a field of each row through the slot's own setter, which bypasses frozen dataclasses."""
    slot = vars(cls)[name]
    assert isinstance(slot, MemberDescriptorType)
    deque(map(slot.__set__, rows, values), maxlen=0)


def _merge_by_flags(no: Iterator[object], yes: Iterator[object], flags: list[bool]) -> list[Any]:
    """Return the next item of `yes` for each set flag, of `no` for each other one."""
    return list(map(next, map((no, yes).__getitem__, flags)))


def _select(values: Sequence[Any], indices: Sequence[int]) -> list[object]:
    """Return the values at these indices. Raises ValueError for an invalid index."""
    if indices and not 0 <= min(indices) <= max(indices) < len(values):
        raise ValueError(tr("a column refers to a missing entry"))
    return list(map(values.__getitem__, indices))


def _check_types(kind: TypeSpec, values: list[object]) -> list[Any]:
    if not all(is_of_kind(kind, value) for value in values):
        raise ValueError(tr("a value is not of type {kind}").format(kind=kind))
    return values
