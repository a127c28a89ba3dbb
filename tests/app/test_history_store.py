"""The history file: runs are found by any word, none is lost, and no other user can read it."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decodescope.app.features.history.store import history_tables
from decodescope.app.features.history.store.database import MIGRATIONS, HistoryUnavailable
from decodescope.app.features.history.store.history_record import HistoryRecord, SavedRunData, preview_line
from decodescope.app.features.history.store.history_store import FILE_NAME, HistoryStore
from decodescope.app.storage.json_files import StorageError
from tests.app.history_files import all_ids, recording, run_data, run_id, start_saving_process
from tests.fuzz.outcomes import short


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HistoryStore]:
    store = HistoryStore(tmp_path / "history")
    yield store
    store.close()


def reopened(store: HistoryStore) -> HistoryStore:
    store.close()
    store.__init__(store.path.parent)  # type: ignore[misc]
    return store


def test_saved_run_is_read_back_after_reopening(store: HistoryStore, tmp_path: Path) -> None:
    stored = run_data(1, seed=7, tokens=40, seconds=0.4, speed=120.5, parent=run_id(9), place=3, message="EOS")
    store.save(stored, recording(tmp_path, 500))
    again = reopened(store)
    found = again.get(run_id(1))
    assert found is not None
    assert (found.seed, found.speed, found.parent, found.place) == (7, 120.5, run_id(9), 3)
    assert found.bytes >= 500
    assert again.request(run_id(1)) == {"prompt": "Once upon a time", "seed": 1}
    assert again.trace_path(run_id(1)).read_bytes() == b"x" * 500
    assert again.get(run_id(2)) is None
    assert again.request(run_id(2)) == {}


def test_ids_are_pinned_first_then_newest_first(store: HistoryStore) -> None:
    for number in (2, 1, 3):
        store.save(run_data(number))
    assert store.ids() == [run_id(3), run_id(2), run_id(1)]
    store.pin(run_id(1), True)
    assert store.ids() == [run_id(1), run_id(3), run_id(2)]
    assert [record.pinned for record in store.records(store.ids())] == [True, False, False]
    assert (store.latest(), store.latest(store.records([run_id(3)])[0].made)) == (run_id(3), run_id(2))


def test_saving_same_run_twice_keeps_first(store: HistoryStore) -> None:
    store.save(run_data(1, title="First"))
    store.save(run_data(1, title="Second"))
    assert [record.title for record in store.records(store.ids())] == ["First"]


FOUND = [
    ("dragon", True), ("DRAG", True), ("ragons", True), ("fire dragons", True), ("dragons tea", False),
    ("grüße", True), ("GRÜSSE", True), ("猫", True), ("猫咪喝", True), ("狗", False), ("“", True), ('"', True),
    ("ab", False), ("b\0c", True), ("' OR 1", False), ("🐉", True), ("AND", True), ("my title", True), ("", True),
]  # fmt: skip


@pytest.mark.parametrize("has_index", [True, False])
def test_search_finds_run_by_part_of_any_word(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch, has_index: bool
) -> None:
    """With SQLite's index and without: the same runs."""
    if not has_index:
        monkeypatch.setattr(history_tables.SearchIndex, "_create", lambda _self: False)
        reopened(store)
    text = 'Two dragons breathe fire and say “Grüße”. "b\0c" 猫咪喝茶 🐉'
    store.save(run_data(1, text=text, title="My Title"))
    store.save(run_data(2, "Something else", " entirely"))
    for query, is_found in FOUND:
        assert (run_id(1) in store.ids(query)) == is_found, query
    assert store.ids("entirely") == [run_id(2)]


def test_a_new_title_is_found_and_the_old_one_is_not(store: HistoryStore) -> None:
    store.save(run_data(1, title="Dragons"))
    store.rename(run_id(1), "  Foxes \n of the\0hill ")
    assert (store.ids("dragons"), store.ids("foxes hill")) == ([], [run_id(1)])
    found = store.get(run_id(1))
    assert found is not None
    assert found.name == "Foxes of the hill"


def test_runs_saved_without_index_are_indexed_when_reopened(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program whose SQLite has no full-text search has kept them."""
    store.save(run_data(1, text=" dragons"))
    with monkeypatch.context() as patched:
        patched.setattr(history_tables.SearchIndex, "_create", lambda _self: False)
        reopened(store).save(run_data(2, text=" more dragons"))
    assert reopened(store).ids("dragons") == [run_id(2), run_id(1)]


def test_any_text_can_be_saved_and_searched(store: HistoryStore) -> None:
    @short(40)
    @given(st.text(max_size=30), st.text(max_size=30))
    def check(text: str, query: str) -> None:
        store.forget([run_id(1)])
        odd = HistoryRecord(run_id(1), 0.0, preview_line(text), preview_line(text), text[:5], text[:5], title=text)
        store.save(SavedRunData(odd, text, {"prompt": text}))
        assert store.request(run_id(1)) == {"prompt": text}
        assert set(store.ids(query)) <= {run_id(1)}
        assert store.ids(" ".join(text.split())) == [run_id(1)]

    check()


def test_delete_can_be_undone_until_forget(store: HistoryStore, tmp_path: Path) -> None:
    store.save(run_data(1), recording(tmp_path))
    store.delete(run_id(1))
    assert (store.ids(), store.ids("fox"), store.totals()) == ([], [], (0, 0))
    assert reopened(store).trace_path(run_id(1)).exists()
    store.restore(run_id(1))
    assert store.ids("fox") == [run_id(1)]
    store.delete(run_id(1))
    store.forget([run_id(1)])
    store.restore(run_id(1))
    assert store.ids() == []
    assert not store.trace_path(run_id(1)).exists()


def test_expired_deletions_are_purged_on_open(
    store: HistoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(run_data(1), recording(tmp_path))
    store.delete(run_id(1))
    monkeypatch.setattr("decodescope.app.features.history.store.history_store.UNDO_SECONDS", -1)
    assert not reopened(store).trace_path(run_id(1)).exists()


def test_trim_removes_oldest_unpinned_runs(store: HistoryStore, tmp_path: Path) -> None:
    for number in range(6):
        store.save(run_data(number), recording(tmp_path, 10_000))
    store.pin(run_id(0), True)
    store.delete(run_id(4))
    assert store.trim(35_000) == 3
    assert store.ids() == [run_id(0), run_id(5), run_id(3)]
    assert sorted(path.stem for path in store.traces.iterdir()) == [run_id(0), run_id(3), run_id(5)]
    assert store.trim(1) == 1
    assert store.ids() == [run_id(0), run_id(5)], "neither a pinned run nor the last one goes"


def test_forget_all_erases_data_from_disk(store: HistoryStore, tmp_path: Path) -> None:
    """Nothing remains in free pages, in SQLite's journal files or in copies."""
    secret = "xylophone-secret-4711"
    store.save(run_data(1, prompt=secret, text=secret, title=secret), recording(tmp_path))
    store.path.with_name(f"{FILE_NAME}.bad-1").write_text(secret)
    store.forget_all()
    assert (store.ids(), list(store.traces.iterdir())) == ([], [])
    for path in store.path.parent.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    store.save(run_data(2))
    assert store.ids("fox") == [run_id(2)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_history_files_are_private_to_user(store: HistoryStore, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        reopened(store).save(run_data(1), recording(tmp_path))
        for path in (store.path.parent, *store.path.parent.rglob("*")):
            wanted = 0o700 if path.is_dir() else 0o600
            if path.parent != store.traces:
                assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    finally:
        os.umask(before)


def test_trace_path_of_invalid_id_is_rejected(store: HistoryStore) -> None:
    for odd in ("../escape", "", "a/b", "ABC", "x" * 20, "0" * 65):
        with pytest.raises(ValueError, match="no run's id"):
            store.trace_path(odd)


DAMAGES = {
    "no database": b"not a database at all" * 100,
    "cut": None,
    "another program's": "CREATE TABLE other (a)",
    "a column is missing": "CREATE TABLE runs (id); PRAGMA user_version = 1",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_set_aside_with_notice(tmp_path: Path, damage: str) -> None:
    path, what = tmp_path / FILE_NAME, DAMAGES[damage]
    if isinstance(what, bytes):
        path.write_bytes(what)
    elif isinstance(what, str):
        with sqlite3.connect(path) as connection:
            connection.executescript(what)
        connection.close()
    else:
        store = HistoryStore(tmp_path)
        for number in range(200):
            store.save(run_data(number))
        store.close()
        path.write_bytes(path.read_bytes()[:5000])
    as_it_was = path.read_bytes()
    store = HistoryStore(tmp_path)
    store.save(run_data(1))
    assert store.ids() == [run_id(1)]
    assert len(store.notices) == 1
    assert f"The old file was saved as {FILE_NAME}.bad-1 in {tmp_path}" in store.notices[0]
    assert (tmp_path / f"{FILE_NAME}.bad-1").read_bytes() == as_it_was
    store.close()


def test_damage_found_by_search_index_starts_new_file(tmp_path: Path) -> None:
    """Damage the last page of texts, which is read only when the index counts them."""
    store = HistoryStore(tmp_path)
    for number in range(200):
        store.save(run_data(number, "A fox" * 200))
    store.close()
    path = tmp_path / FILE_NAME
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'texts'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    head = size * (root - 1)
    assert content[head] == 5, "of several pages: this one names the others, the last one first"
    last = int.from_bytes(content[head + 8 : head + 12], "big")
    content[size * (last - 1) : size * last] = b"\xff" * size
    path.write_bytes(content)
    store = HistoryStore(tmp_path)
    store.save(run_data(1000))
    assert store.ids() == [run_id(1000)]
    assert ["A new one was started" in notice for notice in store.notices] == [True]
    assert (tmp_path / f"{FILE_NAME}.bad-1").read_bytes() == content
    store.close()


def with_odd_values(folder: Path, change: str) -> HistoryStore:
    """A history of two runs and a ranking, changed by another program."""
    store = HistoryStore(folder)
    for number in (1, 2):
        store.save(run_data(number))
    store.rankings.add([{"prompt": ""}])
    store.close()
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute(f"UPDATE {change}")
    connection.close()
    return HistoryStore(folder)


ODD: dict[str, tuple[str, Callable[[HistoryStore], object], object]] = {
    "bytes for a word": ("runs SET strategy = x'ff00'", lambda store: store.records([run_id(1)]), []),
    "a word for a count": ("runs SET tokens = 'many'", lambda store: store.records([run_id(1)]), []),
    "a word for a moment": ("runs SET made = 'yesterday'", lambda store: store.records([run_id(1)]), []),
    "bytes for a speed": ("runs SET speed = x'01'", lambda store: store.records([run_id(1)]), []),
    "bytes for an id": ("runs SET id = x'ff' WHERE number = 1", lambda store: store.ids(), []),
    "a name for an id": ("runs SET id = '../x' WHERE number = 1", lambda store: store.ids(), []),
    "a name for a deleted id": ("runs SET id = '../x', deleted = 1 WHERE number = 1", lambda store: store.ids(), []),
    "bytes for the latest id": ("runs SET id = x'ff' WHERE number = 2", lambda store: store.latest(), None),
    "bytes for a deleted id": ("runs SET id = x'ff', deleted = 1 WHERE number = 1", lambda store: store.ids(), []),
    "a word for a size": ("runs SET bytes = 'many' WHERE number = 1", lambda store: store.trim(0), 0),
    "no size at all": ("runs SET bytes = 9e999 WHERE number = 1", lambda store: store.totals(), (0, 0)),
    "a word for all sizes": ("runs SET bytes = 'many' WHERE number = 1", lambda store: store.totals(), (0, 0)),
    "bytes for a request": ("texts SET request = x'7b7d'", lambda store: store.request(run_id(1)), {}),
    "a list for a request": ("texts SET request = '[]'", lambda store: store.request(run_id(1)), {}),
    "a deep request": (f"texts SET request = '{'[' * 100_000}'", lambda store: store.request(run_id(1)), {}),
    "bytes for a ranking": ("rankings SET ranking = x'ff'", lambda store: store.rankings.all(dict), []),
    "a number for a ranking": ("rankings SET ranking = 5", lambda store: store.rankings.all(dict), []),
    "no ranking": ("rankings SET ranking = '{}'", lambda store: store.rankings.all(_no_ranking), []),
}


def _no_ranking(values: object) -> object:
    raise ValueError("it is no ranking")


@pytest.mark.parametrize("odd", ODD)
def test_column_of_wrong_type_is_treated_as_damage(tmp_path: Path, odd: str) -> None:
    """SQLite accepts any type in any column; listing such runs must not raise a raw error."""
    change, question, answer = ODD[odd]
    store = with_odd_values(tmp_path, change)
    assert question(store) == answer
    assert ["A new one was started" in notice for notice in store.notices] == [True]
    assert (tmp_path / f"{FILE_NAME}.bad-1").exists()
    store.close()


def test_save_with_missing_recording_raises_storage_error(store: HistoryStore, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone"):
        store.save(run_data(1), tmp_path / "gone")
    assert store.ids() == []


def test_unreadable_replacement_file_raises_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised once; the store does not create one file after another."""

    opened: list[sqlite3.Connection] = []

    def unreadable(connection: sqlite3.Connection) -> None:
        opened.append(connection)
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr("decodescope.app.features.history.store.history_store.HistoryTables", unreadable)
    with pytest.raises(StorageError, match="cannot be used: database disk image is malformed"):
        HistoryStore(tmp_path)
    assert [path.name for path in tmp_path.glob("*.bad-*")] == [f"{FILE_NAME}.bad-1"]
    assert len(opened) == 2
    for connection in opened:  # Python 3.13 warns of each that is left open
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_damage_found_during_save_keeps_run_and_old_file(tmp_path: Path) -> None:
    """Pages in the middle are damaged: the run is saved in a new file and the old file is kept."""
    store = HistoryStore(tmp_path)
    for number in range(300):
        store.save(run_data(number))
    store.close()
    content = bytearray((tmp_path / FILE_NAME).read_bytes())
    content[4096 * 3 :] = b"\xff" * (len(content) - 4096 * 3)
    (tmp_path / FILE_NAME).write_bytes(content)
    store = HistoryStore(tmp_path)
    store.save(run_data(1000))
    assert store.ids("fox") == [run_id(1000)]
    assert any("A new one was started" in notice for notice in store.notices)
    assert (tmp_path / f"{FILE_NAME}.bad-1").stat().st_size == len(content)
    store.close()


def test_file_of_newer_version_is_kept_unchanged(store: HistoryStore) -> None:
    store.save(run_data(1))
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    as_it_was = store.path.read_bytes()
    with pytest.raises(HistoryUnavailable, match="written by a newer version"):
        HistoryStore(store.path.parent)
    assert store.path.read_bytes() == as_it_was


def _add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")


def _fail_late(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM runs")
    raise KeyError("mood")


def test_migration_keeps_copy_of_old_file(store: HistoryStore) -> None:
    store.save(run_data(1))
    store.close()
    newer = HistoryStore(store.path.parent, (*MIGRATIONS, _add_column))
    assert newer.ids() == [run_id(1)]
    newer.close()
    assert all_ids_of(store.path.with_name(f"{FILE_NAME}.old-1")) == [run_id(1)]
    with pytest.raises(HistoryUnavailable, match="newer"):
        HistoryStore(store.path.parent)


def test_failed_migration_keeps_file_unchanged(store: HistoryStore) -> None:
    store.save(run_data(1))
    store.close()
    as_it_was = store.path.read_bytes()
    with pytest.raises(HistoryUnavailable, match="could not be updated"):
        HistoryStore(store.path.parent, (*MIGRATIONS, _add_column, _fail_late))
    assert store.path.read_bytes() == as_it_was
    assert reopened(store).ids() == [run_id(1)]


def all_ids_of(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [row[0] for row in connection.execute("SELECT id FROM runs")]
    connection.close()
    return found


def test_unwritable_folder_raises_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        HistoryStore(tmp_path / "file" / "history")


def test_concurrent_saves_of_two_processes_keep_all_runs(store: HistoryStore) -> None:
    folder = store.path.parent
    programs = [start_saving_process(folder, first, 25) for first in (100, 200)]
    for number in range(25):
        store.save(run_data(number))
    for program in programs:
        assert program.communicate(timeout=60)[0].split()[-1] in ("124", "224")
        assert program.returncode == 0
    wanted = {run_id(first + number) for first in (0, 100, 200) for number in range(25)}
    assert set(store.ids()) == set(store.ids("fox")) == wanted
    assert len(list(store.traces.iterdir())) == 50


def kill_once(folder: Path, first: int, after: int) -> list[str]:
    """Kill a process right after it printed the `after`-th saved run; return the saved ids."""
    program = start_saving_process(folder, first, 10_000)
    assert program.stdout is not None
    reported = [program.stdout.readline().strip() for _ in range(after + 1)]
    program.kill()
    rest = program.stdout.read().split()  # `communicate` would lose what `readline` has read ahead
    program.communicate(timeout=60)
    return [run_id(int(number)) for number in (*reported[1:], *rest)]


def check_kills(folder: Path, moments: list[int]) -> None:
    stored: list[str] = []
    for round_, moment in enumerate(moments):
        stored += kill_once(folder, 100_000 * (round_ + 1), moment)
        found = all_ids(folder)
        assert set(stored) <= set(found)
        assert len(found) <= len(stored) + round_ + 1, "at most one a kill was kept and not told of any more"
    store = HistoryStore(folder)
    assert set(stored) <= set(store.ids("fox"))
    assert all(store.trace_path(run).stat().st_size == 1000 for run in stored)
    store.close()


def test_killed_process_keeps_saved_runs(tmp_path: Path) -> None:
    check_kills(tmp_path, [0, 1, 4, 9, 17])


@pytest.mark.fuzz
def test_process_killed_at_fifty_random_times_keeps_saved_runs(tmp_path: Path) -> None:
    import random

    check_kills(tmp_path, [random.Random(number).randrange(60) for number in range(50)])
