"""Prefix files with changed bytes give the same text as before, or are rejected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import strategies as st
from transformers import GenerationConfig

from decodescope import core
from tests.core import tiny
from tests.fuzz.outcomes import check_cases, long, short

edits = st.lists(
    st.tuples(st.sampled_from(("flip", "zero", "cut", "insert", "swap")), st.integers(0, 2**16), st.integers(1, 64)),
    min_size=0,
    max_size=3,
)


def edited(data: bytes, edit: tuple[str, int, int]) -> bytes:
    how, place, count = edit
    place %= max(1, len(data))
    before, part, after = data[:place], data[place : place + count], data[place + count :]
    if how == "flip":
        return before + bytes(byte ^ 0x20 for byte in part) + after
    if how == "swap":
        return before + part[::-1] + after
    return before + {"zero": bytes(len(part)), "cut": b"", "insert": part + part}[how] + after


class Saved:
    """A prefix in a file, and the text that goes on from it."""

    def __init__(self, folder: Path) -> None:
        self.model, self.path, store = tiny.shared("llama"), folder / "prefix", core.PrefixStore()
        self.request = core.Request(tiny.prompt(20), GenerationConfig(max_new_tokens=5, min_new_tokens=5))
        self.text = core.run(self.model, self.request, prefixes=store).sequences
        store.save(self.path, self.model)
        self.data = self.path.read_bytes()

    def use_edited(self, edits: Sequence[tuple[str, int, int]]) -> None:
        """Read the file with these edits, and go on from what it holds."""
        self.path.write_bytes(reduce(edited, edits, self.data))
        store = core.PrefixStore()
        store.load(self.path, self.model)
        assert core.run(self.model, self.request, prefixes=store).sequences == self.text


def test_damaged_prefix_files_are_read_whole_or_refused(tmp_path: Path) -> None:
    check_cases(short(60), edits, Saved(tmp_path).use_edited)


@pytest.mark.fuzz
def test_many_damaged_prefix_files_are_read_whole_or_refused(tmp_path: Path) -> None:
    check_cases(long(0.1), edits, Saved(tmp_path).use_edited)
