"""Damaged histories: the program keeps working, saves the next run, and loses no byte of the file."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import strategies as st

from decodescope.app.features.history.panel import history_wording
from decodescope.app.features.history.store.history_store import FILE_NAME, HistoryStore
from decodescope.app.features.labs.controller import preference
from decodescope.app.state.request_json import RequestFormatError, request_from_json
from decodescope.core.errors import DecodescopeError
from tests.app.history_files import run_data, run_id
from tests.fuzz.outcomes import check_cases, long, short

Change = tuple[float, bytes]
"""Where (a share of the file), and what is written over it."""
changes = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=200)), min_size=1, max_size=6)
cuts = st.one_of(st.none(), st.floats(0, 1))
COLUMNS = {
    "runs": (
        "id", "made", "title", "opening", "words", "model", "strategy", "cache", "seed", "outcome", "message",
        "tokens", "seconds", "speed", "cache_bytes", "bytes", "pinned", "parent", "place", "deleted",
    ),
    "texts": ("title", "words", "request"),
    "rankings": ("ranking",),
}  # fmt: skip
Odd = tuple[tuple[str, str], int, object]
"""A column, the number of a row, and what another program has put there."""
odds = st.lists(
    st.tuples(
        st.sampled_from([(table, column) for table, columns in COLUMNS.items() for column in columns]),
        st.integers(1, 60),
        st.one_of(
            st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=40), st.binary(max_size=40),
            st.sampled_from((0, -1, 1e300, float("inf"), "", "\0", "x" * 100_000, "[" * 100_000, "{}", "[]", "null")),
        ),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


@cache
def whole() -> bytes:
    """A history of 60 runs."""
    with tempfile.TemporaryDirectory() as folder:
        store = HistoryStore(Path(folder))
        for number in range(60):
            store.save(run_data(number, f"Prompt {number} of a story that goes on", " word" * 100, title=f"T{number}"))
            store.rankings.add([{"prompt": "", "completions": ["a", "b"], "ranks": [1, 2]}])
        store.close()
        return (Path(folder) / FILE_NAME).read_bytes()


def damaged(where: Sequence[Change], cut: float | None) -> bytes:
    content = bytearray(whole())
    for share, written in where:
        place = int(share * (len(content) - len(written)))
        content[place : place + len(written)] = written
    return bytes(content if cut is None else content[: int(cut * len(content))])


def with_odd_values(values: Sequence[Odd]) -> bytes:
    """Still a database, as SQLite would have it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(_unlocked(whole()))
        for (table, column), row, value in values:
            shown = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE number = ?", (shown, row))
        return connection.serialize()


def _unlocked(content: bytes) -> bytes:
    """In memory there is no journal beside the file: bytes 18 and 19 say that none is wanted."""
    return content[:18] + b"\1\1" + content[20:]


def use(content: bytes) -> None:
    """Everything the window does with a history; the saved run is listed, or the reason why not is shown."""
    folder = Path(tempfile.mkdtemp(prefix="decodescope-fuzz-"))
    try:
        (folder / FILE_NAME).write_bytes(content)
        store = HistoryStore(folder)
        try:
            _use(store)
            if store.notices:
                assert any(path.name.startswith(f"{FILE_NAME}.bad") for path in folder.iterdir())
        finally:
            store.close()
    finally:
        shutil.rmtree(folder)


def _use(store: HistoryStore) -> None:
    for query in ("", "story", "12", "nowhere"):
        for record in store.records(store.ids(query)[:64]):
            assert all(map(str, (history_wording.tooltip_text(record), history_wording.accessible_text(record, 0.0))))
            with suppress(RequestFormatError):
                request_from_json(store.request(record.id))
            store.latest(record.made)
            store.trace_path(record.id)
    store.totals()
    store.rankings.all(preference.parse_ranking)
    store.rename(run_id(7), "Another name")
    store.save(run_data(1000, "The new one"))
    assert run_id(1000) in store.ids()
    store.pin(run_id(1000), True)
    store.delete(run_id(3))
    store.trim(20_000)
    store.forget([run_id(3)])
    assert store.get(run_id(1000)) is not None or store.notices  # some damage is met only when old runs go
    json.dumps(store.request(run_id(1000)))


def test_damaged_history_is_read_as_far_as_possible() -> None:
    check_cases(short(25), st.tuples(changes, cuts), lambda case: use(damaged(*case)))


@pytest.mark.fuzz
def test_many_damaged_histories_are_read_as_far_as_possible() -> None:
    check_cases(long(0.1), st.tuples(changes, cuts), lambda case: use(damaged(*case)))


@pytest.mark.slow
def test_invalid_history_values_are_reported_or_shown() -> None:
    check_cases(short(40), odds, lambda values: use(with_odd_values(values)))


@pytest.mark.fuzz
def test_many_invalid_history_values_are_reported_or_shown() -> None:
    check_cases(long(0.1), odds, lambda values: use(with_odd_values(values)))


def test_invalid_history_path_raises_core_error() -> None:
    with pytest.raises(DecodescopeError):
        HistoryStore(Path("/dev/null/history"))
