"""Damaged files of the program: truncated, torn, mistyped, from another program, or not files at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from decodescope.app.storage.settings import Settings
from decodescope.app.storage.settings_file import SECTIONS

SETTINGS: dict[str, Any] = {name: getattr(Settings(), name).write() for name in SECTIONS} | {
    "choices": {
        **Settings().choices.write(),
        "values": {"sampling": {"temperature": 0.7, "top_k": 5}, "beam_search": {"num_beams": 3}},
        "cache_values": {"quantized": {"nbits": 4}},
        "drafts": ["storyteller-draft"],
    },
    "future": {"version": 3, "x": [1, {"y": None}]},
}
CHAT: dict[str, Any] = {
    "version": 1,
    "turns": [
        {"role": "system", "content": "Be kind", "held": True},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Once", "held": False, "figures": [1, 2, 3]},
    ],
    "when_full": "drop",
}
PRESET: dict[str, Any] = {
    "do_sample": True, "temperature": 0.6, "top_k": 5, "num_beams": 1, "stop_strings": ["The end"],
    "bad_words_ids": [[1, 2], [3]], "decodescope": {"strategy": "sampling", "options": {}, "drafters": ["x"]},
}  # fmt: skip


class Content(bytes):
    """Bytes with a short repr."""

    def __repr__(self) -> str:
        return f"{bytes(self[:40])!r}, {len(self)} bytes"


RAW = tuple(map(Content, (
    b"", b"{", b"[]", b"null", b"5", b"\xff\xfe", b"\0" * 100, b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000,
    b'{"version": 1e999}', b'{"appearance": 1e999}', b'{"choices": {"version": 1e999, "seed": 1e999}}',
    b'{"turns": 1e999}', b'{"x": "\\ud800"}', b"[General]\nwindow=5\n", b"\xef\xbb\xbf{}",
)))  # fmt: skip
Put = Callable[[Path], None]


def _as_folder(path: Path) -> None:
    (path / "inside").mkdir(parents=True)


def _as_loop(path: Path) -> None:
    path.symlink_to(path)


def _as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _as_dead_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


NO_FILES: tuple[Put, ...] = (_as_folder, os.mkfifo, _as_loop, _as_device, _as_dead_link)


@st.composite
def mistyped(draw: st.DrawFn, whole: dict[str, Any], odd: st.SearchStrategy[Any]) -> bytes:
    """`whole` with some values replaced, removed or moved below other names, as JSON."""
    data = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(1, 3))):
        group, key = draw(st.sampled_from(list(_places(data)) or [(data, "x")]))
        if isinstance(group, dict) and draw(st.booleans()) and draw(st.booleans()):
            group.pop(key, None)
        else:
            group[key] = deepcopy(draw(odd))  # another change may go into it
    return json.dumps(data).encode("ascii")


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every (group, key) in it, however deep."""
    if not isinstance(data, dict | list):
        return []
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    return [(data, key) for key in keys] + [place for key in keys for place in _places(data[key])]


@st.composite
def torn(draw: st.DrawFn, whole: bytes) -> bytes:
    """`whole`, cut somewhere, or with some bytes changed."""
    if draw(st.booleans()):
        return whole[: draw(st.integers(0, len(whole)))]
    bent = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        bent[draw(st.integers(0, len(bent) - 1))] = draw(st.integers(0, 255))
    return bytes(bent)


def damaged(whole: dict[str, Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes | Put]:
    """Return possible replacements of a file with the content `whole`."""
    plain = json.dumps(whole).encode("ascii")
    return st.one_of(mistyped(whole, odd), mistyped(whole, odd), torn(plain), st.sampled_from((*RAW, *NO_FILES)))


def put(path: Path, damage: bytes | Put) -> None:
    """Leave the damage at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        damage(path)
