"""What the shortest text of a JSON schema holds, read off the keywords that say how long it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from core.grammar.length_bounds import (
    NEVER,
    NOTHING,
    BoundMeasures,
    ByteSet,
    LowerBound,
    max_bound,
    min_bound,
    sum_bounds,
)
from core.grammar.regex_length import regex_lower_bound

_ROUNDS = 64
"""How often what refers to itself is reckoned anew."""
_DATE = frozenset(b"0123456789-")
_FORMATS = {
    "date": (10, _DATE),
    "date-time": (20, _DATE | frozenset(b"Tt:.+Zz ")),
    "uuid": (36, frozenset(b"0123456789abcdefABCDEF-")),
}
"""Fewest letters of each, and which they may be."""
_PLAIN = frozenset(map(chr, range(32, 127))) - {'"', "\\"}
"""Letters that a JSON text writes in one way only."""
_PLAIN_BYTES = frozenset(map(ord, _PLAIN))


def schema_lower_bound(schema: object, measures: BoundMeasures) -> LowerBound:
    """A lower bound for every text of a schema; NEVER where each of them would have to hold itself."""
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
    """Reads a schema's parts; what a reference stands for is what is known of it so far, at first that no text is."""

    def __init__(self, root: object, measures: BoundMeasures) -> None:
        self._root, self._of_bytes, self._of_any = root, measures.of_bytes, measures.of_any
        self._measures, self._inside = measures, BoundMeasures(self._string_bytes, self._string_letters)
        self.references: dict[str, LowerBound] = {}

    def read(self, schema: object) -> LowerBound:
        """What it says of the length of its texts; nothing where that is hard to tell."""
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
        least = _count(schema.get("minimum")) if kind == "integer" else 0
        return self._of_any(len(str(least)))

    def _string(self, schema: Mapping[str, object]) -> LowerBound:
        pattern, form = schema.get("pattern"), _FORMATS.get(str(schema.get("format")))
        conditions = [self._of_any(_count(schema.get("minLength")))]
        if isinstance(pattern, str):
            conditions.append(regex_lower_bound(pattern, self._inside))
        if form is not None:
            conditions.append(self._inside.of_letters(*form))
        return self._enclosed(b'"', [max_bound(conditions)], b'"')

    def _string_bytes(self, part: bytes) -> LowerBound:
        """Letters of a string, as JSON writes them."""
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
        )  # one name is empty
        return self._enclosed(b"{", [*parts, others, self._commas(count)], b"}")

    def _part(self, schema: object) -> LowerBound:
        """A value within others, which is one letter at least."""
        return max_bound((self.read(schema), self._of_any(1)))

    def _value(self, value: object) -> LowerBound:
        """A value that stands there."""
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
            return self._of_any(1)  # 1e3 is 1000.0
        return self._of_bytes(json.dumps(value).encode())

    def _enclosed(self, begin: bytes, parts: Sequence[LowerBound], end: bytes) -> LowerBound:
        return sum_bounds((self._of_bytes(begin), *parts, self._of_bytes(end)))

    def _commas(self, count: int) -> LowerBound:
        return self._of_bytes(b",").repeated(max(0, count - 1))


def _resolve_reference(name: str, root: object) -> object:
    """What a reference within the schema stands for; None where that is not found."""
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
