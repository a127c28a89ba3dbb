"""Lower bounds for every text of a grammar: sums of parts, minimum of alternatives, maximum of conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

ByteSet = frozenset[int] | None
"""Every byte that a part of a text may consist of; None: any byte."""


class LowerBound(NamedTuple):
    """A lower bound in two measures, which are kept separate because they add up differently."""

    bytes: float = 0
    inner_tokens: float = 0
    """Tokens that begin inside the known parts, not at their first byte: adjacent parts share at most the token at that
    byte. Infinite, like `bytes`, if there is no text.
    """

    def followed_by(self, other: LowerBound) -> LowerBound:
        """Return the bound of both, one after the other."""
        return LowerBound(self.bytes + other.bytes, self.inner_tokens + other.inner_tokens)

    def repeated(self, count: int) -> LowerBound:
        """Return the bound of `count` repetitions."""
        return LowerBound(self.bytes * count, self.inner_tokens * count) if count else NOTHING


NOTHING, NEVER = LowerBound(), LowerBound(float("inf"), float("inf"))


def sum_bounds(parts: Iterable[LowerBound]) -> LowerBound:
    """Return the bound of all parts, one after the other."""
    whole = NOTHING
    for part in parts:
        whole = whole.followed_by(part)
    return whole


def min_bound(alternatives: Iterable[LowerBound]) -> LowerBound:
    """Return the bound of one of the alternatives; NEVER if there are none."""
    whole = NEVER
    for way in alternatives:
        whole = LowerBound(min(whole.bytes, way.bytes), min(whole.inner_tokens, way.inner_tokens))
    return whole


def max_bound(conditions: Iterable[LowerBound]) -> LowerBound:
    """Return the bound of a text that meets all conditions."""
    whole = NOTHING
    for one in conditions:
        whole = LowerBound(max(whole.bytes, one.bytes), max(whole.inner_tokens, one.inner_tokens))
    return whole


@dataclass(frozen=True, slots=True)
class BoundMeasures:
    """Functions that measure the parts of a text."""

    of_bytes: Callable[[bytes], LowerBound]
    """Measure literal bytes."""
    of_letters: Callable[[int, ByteSet], LowerBound]
    """Measure a number of bytes, all taken from a set."""

    def of_any(self, count: int) -> LowerBound:
        """Measure `count` arbitrary bytes."""
        return self.of_letters(count, None)


BYTE_MEASURES = BoundMeasures(lambda part: LowerBound(len(part)), lambda count, _: LowerBound(count))
"""Measures that count bytes only."""


_QUANTIFIERS = {"*": 0, "+": 1, "?": 0}
_HIGH = frozenset(range(128, 256))
"""Bytes of non-ASCII letters."""
_DIGITS = frozenset(b"0123456789")
_CLASSES = {
    "d": _DIGITS | _HIGH,
    "w": _DIGITS | frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") | _HIGH,
    "s": frozenset(b"\t\n\v\f\r ") | _HIGH,
}
"""Character classes, including letters of other scripts."""
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


def regex_lower_bound(pattern: str, measures: BoundMeasures) -> LowerBound:
    """Return a lower bound for a match in any measures: literal letters, and rows of letters from a class.

    Rare syntax (flags, look-around, Unicode classes) counts as nothing, so the result may be too small.
    """
    try:
        return _PatternReader(pattern, measures).alternatives()
    except (IndexError, ValueError, RecursionError):
        return NOTHING


class _ByteRun(NamedTuple):
    """A run of bytes, all taken from a set, or a literal word."""

    size: int = 0
    letters: ByteSet = frozenset()
    word: bytes = b""

    def measure(self, measures: BoundMeasures) -> LowerBound:
        if self.word:
            return measures.of_bytes(self.word)
        return measures.of_letters(self.size, self.letters) if self.size else NOTHING

    def join(self, other: _ByteRun) -> _ByteRun | None:
        """Return both runs as one, or None if that would lose information."""
        if self.word and other.word:
            return _ByteRun(word=self.word + other.word)
        alike = not self.word and not other.word and self.letters == other.letters
        return _ByteRun(self.size + other.size, self.letters) if alike else None

    def repeated(self, count: int) -> _ByteRun:
        """Return the run repeated at least `count` times; no longer a word, because what follows may come after more
        repetitions.
        """
        letters = frozenset(self.word) if self.word else self.letters
        return _ByteRun(count * (self.size or len(self.word)), letters)


class _PatternReader:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str, measures: BoundMeasures) -> None:
        self._pattern, self._position, self._measures = pattern, 0, measures

    def alternatives(self) -> LowerBound:
        """Read up to a closing bracket or the end; return the bound of the alternatives separated by `|`."""
        ways = [self._sequence()]
        while self._next() == "|":
            self._position += 1
            ways.append(self._sequence())
        return min_bound(ways)

    def _next(self) -> str:
        return self._pattern[self._position : self._position + 1]

    def _sequence(self) -> LowerBound:
        parts: list[LowerBound | _ByteRun] = []
        while self._next() not in ("", "|", ")"):
            part, begun = self._item(), self._position
            times = self._repetitions()
            part = part.repeated(times) if self._position > begun else part
            last = parts[-1] if parts else None
            both = last.join(part) if isinstance(last, _ByteRun) and isinstance(part, _ByteRun) else None
            parts[len(parts) - (both is not None) :] = [both or part]
        return sum_bounds(part.measure(self._measures) if isinstance(part, _ByteRun) else part for part in parts)

    def _item(self) -> LowerBound | _ByteRun:
        sign = self._next()
        self._position += 1
        if sign == "(":
            return self._group()
        if sign == "[":
            return _ByteRun(1, self._class())
        if sign == "\\":
            return self._escape()
        if sign == ".":
            return _ByteRun(1, None)
        return NOTHING if sign in "^$" else _ByteRun(word=sign.encode())

    def _group(self) -> LowerBound:
        counts = True
        if self._next() == "?":
            counts = self._pattern[self._position : self._position + 2] == "?:"
            if not counts:
                raise ValueError(self._pattern)  # flags and named groups are not supported here
            self._position += 2
        found = self.alternatives()
        self._position += 1
        return found

    def _class(self) -> ByteSet:
        """Return the bytes that a class may match; None if unknown."""
        begun = self._position
        self._position += self._next() == "^"
        first = self._position
        self._position += self._next() == "]"
        while self._next() != "]":
            if self._next() == "[":
                raise ValueError(self._pattern)  # nested classes
            self._position += 2 if self._next() == "\\" else 1
            if not self._next():
                raise ValueError(self._pattern)
        self._position += 1
        named = _members(self._pattern[first : self._position - 1])
        if named is None or first == begun:
            return named
        return frozenset(range(256)) - (named - _HIGH)

    def _escape(self) -> LowerBound | _ByteRun:
        sign = self._next()
        self._position += 1
        if sign in "pPxuUQ0123456789":
            raise ValueError(self._pattern)
        if sign in "bBAzZ<>":
            return NOTHING
        if sign.isalpha():
            return _ByteRun(word=_CONTROLS[sign].encode()) if sign in _CONTROLS else _ByteRun(1, _CLASSES.get(sign))
        return _ByteRun(word=sign.encode())

    def _repetitions(self) -> int:
        times = 1
        while ((sign := self._next()) and sign in _QUANTIFIERS) or sign == "{":
            if sign == "{":
                end = self._pattern.index("}", self._position)
                times *= int(self._pattern[self._position + 1 : end].partition(",")[0] or 0)
                self._position = end + 1
            else:
                self._position += 1
                times *= _QUANTIFIERS[sign]
            self._position += self._next() == "?"
        return times


def _members(inside: str) -> ByteSet:
    """Return the bytes listed between the brackets of a class, or a superset; None for set operations."""
    if any(sign in inside for sign in ("&&", "--", "~~")):
        return None
    found, place = set[int](), 0
    while place < len(inside):
        first, place = _member(inside, place)
        if first is None:
            return None
        if inside[place : place + 1] == "-" and place + 1 < len(inside):
            last, place = _member(inside, place + 1)
            if last is None or len(first) != 1 or len(last) != 1:
                return None
            found |= set(range(min(first), max(last) + 1))
            continue
        found |= first
    return frozenset(found)


def _member(inside: str, position: int) -> tuple[ByteSet, int]:
    """Return (bytes of the member at `position`, position of the next member)."""
    sign = inside[position]
    if sign != "\\":
        return (frozenset((ord(sign),)) if sign.isascii() else _HIGH), position + 1
    sign = inside[position + 1]
    if sign.isalpha() and sign not in _CONTROLS:
        return _CLASSES.get(sign), position + 2
    return (None if sign.isdigit() else frozenset(_CONTROLS.get(sign, sign).encode())), position + 2


_ROUNDS = 64
"""Maximum number of rounds for schemas that refer to themselves."""
_DATE = frozenset(b"0123456789-")
_FORMATS = {
    "date": (10, _DATE),
    "date-time": (20, _DATE | frozenset(b"Tt:.+Zz ")),
    "uuid": (36, frozenset(b"0123456789abcdefABCDEF-")),
}
"""Minimum length of each format, and its possible bytes."""
_PLAIN = frozenset(map(chr, range(32, 127))) - {'"', "\\"}
"""Characters that JSON writes in only one way."""
_PLAIN_BYTES = frozenset(map(ord, _PLAIN))


def schema_lower_bound(schema: object, measures: BoundMeasures) -> LowerBound:
    """Return a lower bound for every text of a schema; NEVER if each text would have to contain itself."""
    reader = _SchemaReader(schema, measures)
    for _ in range(_ROUNDS):
        before = dict(reader.references)
        found = reader.read(schema)
        for name in list(reader.references):
            reader.references[name] = reader.read(_resolve_reference(name, schema))
        if reader.references == before:
            return found
    return NOTHING


class _SchemaReader:
    """Reads the parts of a schema; references use the bounds found so far, initially NEVER."""

    def __init__(self, root: object, measures: BoundMeasures) -> None:
        self._root, self._of_bytes, self._of_any = root, measures.of_bytes, measures.of_any
        self._measures, self._inside = measures, BoundMeasures(self._string_bytes, self._string_letters)
        self.references: dict[str, LowerBound] = {}

    def read(self, schema: object) -> LowerBound:
        """Return the bound of the texts of `schema`; NOTHING if it is hard to determine."""
        return max_bound(self._conditions(schema)) if isinstance(schema, Mapping) else NOTHING

    def _conditions(self, schema: Mapping[str, object]) -> Iterator[LowerBound]:
        if isinstance(name := schema.get("$ref"), str):
            yield self.references.setdefault(name, NEVER)
        if "const" in schema:
            yield self._value(schema["const"])
        if isinstance(values := schema.get("enum"), (list, tuple)):
            yield min_bound(map(self._value, values))
        for key in ("anyOf", "oneOf"):
            if isinstance(ways := schema.get(key), (list, tuple)):
                yield min_bound(map(self.read, ways))
        if isinstance(conditions := schema.get("allOf"), (list, tuple)):
            yield max_bound(map(self.read, conditions))
        kinds = schema.get("type")
        if isinstance(kinds, str):
            yield self._of_type(kinds, schema)
        elif isinstance(kinds, (list, tuple)):
            yield min_bound(self._of_type(kind, schema) for kind in kinds)

    def _of_type(self, kind: object, schema: Mapping[str, object]) -> LowerBound:
        if kind == "string":
            return self._string(schema)
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            return self._object(schema)
        minimum = _count(schema.get("minimum")) if kind == "integer" else 0
        return self._of_any(len(str(minimum)))

    def _string(self, schema: Mapping[str, object]) -> LowerBound:
        pattern, form = schema.get("pattern"), _FORMATS.get(str(schema.get("format")))
        conditions = [self._of_any(_count(schema.get("minLength")))]
        if isinstance(pattern, str):
            conditions.append(regex_lower_bound(pattern, self._inside))
        if form is not None:
            conditions.append(self._inside.of_letters(*form))
        return self._enclosed(b'"', [max_bound(conditions)], b'"')

    def _string_bytes(self, part: bytes) -> LowerBound:
        """Measure the letters of a string as JSON writes them."""
        return self._of_bytes(part) if set(part) <= _PLAIN_BYTES else self._of_any(len(part))

    def _string_letters(self, count: int, letters: ByteSet) -> LowerBound:
        return self._measures.of_letters(count, letters if letters is not None and letters <= _PLAIN_BYTES else None)

    def _array(self, schema: Mapping[str, object]) -> LowerBound:
        count, first = _count(schema.get("minItems")), schema.get("prefixItems")
        listed = list(first)[:count] if isinstance(first, (list, tuple)) else []
        parts = [*map(self._part, listed), self._part(schema.get("items")).repeated(count - len(listed))]
        return self._enclosed(b"[", [*parts, self._commas(count)], b"]")

    def _object(self, schema: Mapping[str, object]) -> LowerBound:
        required, known = schema.get("required"), schema.get("properties")
        listed = required if isinstance(required, (list, tuple)) else ()
        names = dict.fromkeys(name for name in listed if isinstance(name, str))
        parts = [
            sum_bounds((self._value(name), self._of_bytes(b":"), self._part(_child(known, name)))) for name in names
        ]
        count = max(_count(schema.get("minProperties")), len(names))
        more = count - len(names)
        others = (
            self._of_any(len('"":1')).repeated(more).followed_by(self._of_any(1).repeated(max(0, more - 1)))
        )  # one name may be empty
        return self._enclosed(b"{", [*parts, others, self._commas(count)], b"}")

    def _part(self, schema: object) -> LowerBound:
        """Return the bound of a nested value, which has at least one letter."""
        return max_bound((self.read(schema), self._of_any(1)))

    def _value(self, value: object) -> LowerBound:
        """Return the bound of a literal value."""
        if isinstance(value, Mapping):
            parts = [
                sum_bounds((self._value(str(key)), self._of_bytes(b":"), self._value(value[key]))) for key in value
            ]
            return self._enclosed(b"{", [*parts, self._commas(len(parts))], b"}")
        if isinstance(value, (list, tuple)):
            return self._enclosed(b"[", [*map(self._value, value), self._commas(len(value))], b"]")
        if isinstance(value, str) and not set(value) <= _PLAIN:
            return self._of_any(len(value.encode("utf-8", "replace")) + len('""'))
        if isinstance(value, float):
            return self._of_any(1)  # 1e3 equals 1000.0
        return self._of_bytes(json.dumps(value).encode())

    def _enclosed(self, begin: bytes, parts: Sequence[LowerBound], end: bytes) -> LowerBound:
        return sum_bounds((self._of_bytes(begin), *parts, self._of_bytes(end)))

    def _commas(self, count: int) -> LowerBound:
        return self._of_bytes(b",").repeated(max(0, count - 1))


def _resolve_reference(name: str, root: object) -> object:
    """Return the schema that a reference within the schema points to; None if it is not found."""
    found = root
    for step in name.removeprefix("#").split("/")[1:]:
        found = _child(found, step.replace("~1", "/").replace("~0", "~"))
    return found if name.startswith("#") else None


def _child(known: object, name: str) -> object:
    if isinstance(known, (list, tuple)):
        return known[int(name)] if name.isdecimal() and int(name) < len(known) else None
    return known.get(name) if isinstance(known, Mapping) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
