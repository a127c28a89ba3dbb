"""How many tokens the shortest text of a grammar takes, at least: found from what every one of its texts contains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.grammar.setting import kind_of, schema_of
from core.grammar.width import shortest_match

Part = bytes | int
"""Bytes that stand in every text as they are, or how many there are of any."""
_DEEPEST = 24
_MOST = 4096
"""Parts that are looked at; a text that needs more of them is long enough without the rest."""


def least_tokens(value: Mapping[str, Any], vocabulary: Sequence[bytes | None], limit: int) -> int:
    """Fewest tokens that any text of the grammar can have, or less; 0 where `limit` tokens are surely enough.

    A lower bound: texts of so many tokens need not exist.
    """
    kind = kind_of(value)
    if kind == "choice":
        words = [word.encode() for word in value[kind]]
        if min(map(len, words)) <= limit:
            return 0
        return min(_spelled(word, {token for token in vocabulary if token}) for word in words)
    if kind == "lark":
        return 0
    parts = (
        [shortest_match(value[kind])]
        if kind == "regex"
        else list(_parts(schema_of(value[kind]), schema_of(value[kind])))
    )
    return _bound(parts[:_MOST], [token for token in vocabulary if token], limit)


def _bound(parts: Sequence[Part], tokens: Sequence[bytes], limit: int) -> int:
    """Neighbouring parts may share one token, and no more: each asks for all but one of the tokens that cover it."""
    bytes_in_all = sum(part if isinstance(part, int) else len(part) for part in parts)
    if bytes_in_all <= limit or not tokens:
        return 0
    longest = max(map(len, tokens))
    beginnings = {token[:end] for token in tokens for end in range(1, len(token) + 1)}
    endings = {token[start:] for token in tokens for start in range(len(token))}
    whole = set(tokens)
    covers = (
        -(-part // longest) if isinstance(part, int) else _covered(part, whole, beginnings, endings) for part in parts
    )
    return max(1 + sum(max(cover - 1, 0) for cover in covers), -(-bytes_in_all // longest))


def _covered(part: bytes, whole: set[bytes], beginnings: set[bytes], endings: set[bytes]) -> int:
    """Fewest tokens over a part; the first may begin before it, and the last may end behind it."""
    size = len(part)
    fewest = [0] + [1 if part[:end] in endings else size for end in range(1, size + 1)]
    for end in range(1, size + 1):
        known = whole if end < size else beginnings
        fewest[end] = min(fewest[end], *(fewest[start] + 1 for start in range(end) if part[start:end] in known), size)
    return fewest[size]


def _spelled(word: bytes, whole: set[bytes]) -> int:
    """Fewest tokens that spell exactly `word`; its length where none do."""
    fewest = [0] + [len(word)] * len(word)
    for end in range(1, len(word) + 1):
        fewest[end] = min((fewest[start] + 1 for start in range(end) if word[start:end] in whole), default=len(word))
    return fewest[-1]


def _parts(schema: Any, root: Any, depth: int = 0) -> Iterator[Part]:
    """What every JSON text of a schema holds, in any order; less where that is hard to tell."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    if "$ref" in schema:
        yield from _parts(_referred(schema["$ref"], root), root, depth + 1)
    elif "const" in schema or len(schema.get("enum") or ()) == 1:
        yield from _fixed(schema["const"] if "const" in schema else schema["enum"][0])
    elif schema.get("type") == "string":
        yield b'"'
        yield _count(schema.get("minLength"))
        yield b'"'
    elif schema.get("type") == "array":
        yield from _items(schema, root, depth)
    elif schema.get("type") == "object":
        yield from _object(schema, root, depth)


def _items(schema: Mapping[str, Any], root: Any, depth: int) -> Iterator[Part]:
    count = min(_count(schema.get("minItems")), _MOST)
    yield b"["
    inner = list(_parts(schema.get("items"), root, depth + 1)) or [1]
    for number in range(count):
        yield from ([b","] if number else [])
        yield from inner
    yield b"]"


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> Iterator[Part]:
    required, properties = schema.get("required"), schema.get("properties")
    yield b"{"
    for number, name in enumerate(required if isinstance(required, (list, tuple)) else ()):
        yield from ([b","] if number else [])
        yield json.dumps(name).encode()
        yield b":"
        yield from _parts(properties.get(name) if isinstance(properties, Mapping) else None, root, depth + 1)
    yield b"}"


def _fixed(value: object) -> Iterator[Part]:
    if not isinstance(value, (list, tuple, Mapping)):  # between the parts of those white space may stand
        yield json.dumps(value, ensure_ascii=False).encode() if isinstance(value, str) and value.isascii() else 1


def _referred(name: object, root: Any) -> Any:
    found = root
    for step in str(name).removeprefix("#").split("/")[1:]:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
