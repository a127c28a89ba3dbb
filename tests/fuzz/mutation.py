"""Damage to the files of a corpus, as fuzzers do it: bytes, numbers, pieces of other files, and values of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from tests.fuzz.values import JSON_ODD

MAX_BYTES = 400_000
"""A mutated file is not longer."""
TOKENS = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"null", b"true", b"NaN", b"1e999", b"-1",
    b"0",
    b"18446744073709551616", b"{}", b"[]", b'""', b"\r\n", b"\n", b"\t", b'"', b"'", b"\\", b"/", b"../", b"%s", b"{0}",
    b"=", b":", b",", b"#", b"\xe2\x80\xa8", "🎈".encode(), "ß".encode(), b"2001-02-30", b"0x10",
)  # fmt: skip
LONG_TOKENS = (
    b"[" * 3_000, b"{" * 3_000, b'{"a":' * 3_000, b"(" * 3_000, b"[" * 100_000, b"9" * 5_000, b"\n" * 100_000,
    b" " * 100_000, b"a" * 100_000, b"\\" * 10_000, b'"' * 10_000, b"- " * 30_000, b"a=" * 30_000,
)  # fmt: skip
"""What costs a reader the square of its length, or more of its stack than there is."""
NUMBERS = (
    0,
    1,
    2,
    7,
    8,
    127,
    128,
    255,
    256,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63 - 1,
    2**63,
    2**64 - 1,
)


def mutate(data: bytes, others: Sequence[bytes], tokens: Sequence[bytes], dice: random.Random) -> bytes:
    """Return `data` with one to eight changes; `others` are files of the same kind, `tokens` words of their format."""
    if dice.random() < 0.3 and (changed := _mutate_json(data, dice)) is not None:
        return changed
    words = (*TOKENS, *tokens, *tokens)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        data = dice.choice(_CHANGES)(data, others, words, dice)[:MAX_BYTES]
    return data


def _mutate_json(data: bytes, dice: random.Random) -> bytes | None:
    """Return a JSON file, or a line of one, with other values in it; None if it is not JSON."""
    lines = data.split(b"\n")
    number = dice.randrange(len(lines))
    whole = _parse_json(data)
    value = whole if whole is not None else _parse_json(lines[number])
    if not isinstance(value, dict | list) or not value:
        return None
    for _ in range(dice.randint(1, 3)):
        group, key = dice.choice(_places(value) or [([None], 0)])  # a change may have removed everything
        if isinstance(group, dict) and dice.random() < 0.25:
            group.pop(key, None)
        else:
            group[key] = deepcopy(dice.choice(JSON_ODD))
    changed = json.dumps(value).encode("ascii")
    return changed if whole is not None else b"\n".join([*lines[:number], changed, *lines[number + 1 :]])


def _parse_json(data: bytes) -> Any:
    """Return the value, or None if the data is not JSON, or nested deeply."""
    if data.count(b"[") + data.count(b"{") > 1000:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (group, key) in a value, however deep."""
    if not isinstance(value, dict | list):
        return []
    found, waiting = [], [value]
    while waiting:
        group = waiting.pop()
        keys = list(group) if isinstance(group, dict) else range(len(group))
        found += [(group, key) for key in keys]
        waiting += [group[key] for key in keys if isinstance(group[key], dict | list)]
    return found


_Change = Callable[[bytes, Sequence[bytes], Sequence[bytes], random.Random], bytes]


def _span(data: bytes, dice: random.Random) -> tuple[int, int]:
    """Return the start and end of a piece, mostly a short one."""
    start = dice.randint(0, len(data))
    return start, min(len(data), start + dice.choice((1, 1, 2, 4, 8, 64, 1024)))


def _flip_bit(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _set_byte(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _set_integer(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    """Overwrite two, four or eight bytes with a number at an edge."""
    size, order = dice.choice((2, 4, 8)), dice.choice(("little", "big"))
    start = dice.randint(0, max(0, len(data) - size))
    number = dice.choice(NUMBERS) % 2 ** (8 * size)
    return data[:start] + number.to_bytes(size, "little" if order == "little" else "big") + data[start + size :]


def _set_number(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    """Replace a number that is written as text."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:20_000]))
    if not found:
        return data
    chosen = dice.choice(found)
    number = dice.choice((*map(str, NUMBERS), "-1", "0.5", "-0.0", "1e400", "nan", "inf", "1_0", "007", "9" * 5_000))
    return data[: chosen.start()] + number.encode() + data[chosen.end() :]


def _cut(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    return data[: dice.randint(0, len(data))]


def _delete(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + data[end:]


def _repeat(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + data[start:end] * dice.choice((2, 2, 3, 16, 300)) + data[end:]


def _move(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    start, end = _span(data, dice)
    rest, place = data[:start] + data[end:], dice.randint(0, len(data) - (end - start))
    return rest[:place] + data[start:end] + rest[place:]


def _insert_token(data: bytes, _others: Sequence[bytes], tokens: Sequence[bytes], dice: random.Random) -> bytes:
    place = dice.randint(0, len(data))
    return data[:place] + dice.choice(tokens) + data[place:]


def _replace_by_token(data: bytes, _others: Sequence[bytes], tokens: Sequence[bytes], dice: random.Random) -> bytes:
    start, end = _span(data, dice)
    return data[:start] + dice.choice(tokens) + data[end:]


def _insert_long_token(data: bytes, _others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    place = dice.randint(0, len(data))
    return data[:place] + dice.choice(LONG_TOKENS) + data[place:]


def _replace_value(data: bytes, _others: Sequence[bytes], tokens: Sequence[bytes], dice: random.Random) -> bytes:
    """Replace a word, or a text in quotes."""
    found = list(re.finditer(rb'"[^"\n]*"|[\w.-]+', data[:20_000]))
    if not found:
        return data
    chosen = dice.choice(found)
    return data[: chosen.start()] + dice.choice(tokens) + data[chosen.end() :]


def _splice(data: bytes, others: Sequence[bytes], _tokens: Sequence[bytes], dice: random.Random) -> bytes:
    """Continue with the rest of another file."""
    other = dice.choice(others)
    return data[: dice.randint(0, len(data))] + other[dice.randint(0, len(other)) :]


_CHANGES: Sequence[_Change] = (
    _flip_bit, _flip_bit, _set_byte, _set_byte, _set_integer, _set_integer, _set_number, _cut, _delete, _repeat, _move,
    _insert_token, _replace_by_token, _replace_by_token, _replace_value, _replace_value, _splice, _insert_long_token,
)  # fmt: skip
