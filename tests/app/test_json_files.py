"""Files of the program: written atomically, by one process at a time, readable by this user only."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decodescope.app.storage import json_files
from decodescope.app.storage.json_files import StorageError, UnreadableError, read_json, remove_stale_parts, write_json
from decodescope.app.storage.settings_file import SettingsStore, merge_settings

HAMMER = """
import sys
from pathlib import Path
from decodescope.app.state.conversation import Conversation, ConversationTurn
from decodescope.app.storage.chat_store import ChatStore
from decodescope.app.storage.settings_file import SettingsStore

folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store, chat = SettingsStore(folder), ChatStore(folder)
talk = chat.adopt(Conversation(id="shared"))  # the second process has no lock, as on a disk without locks
settings = store.load()
for n in range(rounds):
    settings.models.folders.append(f"{name}-{n}")
    settings.choices.values[name] = {"top_k": n}
    store.save()
    talk.append(ConversationTurn("user", f"{name} {n}"))
    chat.save(talk)
    assert SettingsStore(folder).load().models.folders
print(store.notices + chat.notices)
"""


def test_concurrent_saves_of_two_processes_keep_all_data(tmp_path: Path) -> None:
    rounds = 40
    commands = [[sys.executable, "-c", HAMMER, str(tmp_path), name, str(rounds)] for name in ("one", "two")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    assert [process.communicate()[0] for process in running] == ["[]\n", "[]\n"]
    settings = SettingsStore(tmp_path).load()
    expected = {f"{name}-{n}" for name in ("one", "two") for n in range(rounds)}
    assert set(settings.models.folders) == expected
    assert settings.choices.values == {name: {"top_k": rounds - 1} for name in ("one", "two")}
    turns = json.loads((tmp_path / "chats" / "shared.json").read_text(encoding="utf-8"))["turns"]
    assert sorted(turn["content"] for turn in turns) == sorted(name.replace("-", " ") for name in expected)
    assert {path.name for path in tmp_path.iterdir()} == {"settings.json", "chats", json_files.LOCK_NAME}


@pytest.mark.slow
def test_read_during_write_returns_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    script = (
        "import sys; from pathlib import Path; from decodescope.app.storage.json_files import write_json\n"
        "for n in range(300): write_json(Path(sys.argv[1]), [n] * 5000)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path)]) for _ in range(2)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            assert len(set(read_json(path))) == 1
            reads += 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads


def test_written_files_are_private_to_user(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.json"
    write_json(path, {})
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o644)
    write_json(path, {})
    assert path.stat().st_mode & 0o777 == 0o600


def test_write_through_symlink_keeps_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x.json").symlink_to(tmp_path / "there" / "y.json")
    write_json(tmp_path / "x.json", 5)
    assert read_json(tmp_path / "there" / "y.json") == 5
    assert (tmp_path / "x.json").is_symlink()


@pytest.mark.parametrize("text", ["Zwölf 🎈", "half a \ud83d", "bytes \udcff"])
def test_any_text_survives_round_trip(tmp_path: Path, text: str) -> None:
    write_json(tmp_path / "x.json", {"text": text})
    assert read_json(tmp_path / "x.json") == {"text": text}


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free up space"),
        (errno.EROFS, "writable"),
        (errno.EACCES, "writable"),
        (errno.EIO, "--config-dir"),
    ],
)
def test_failed_write_keeps_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "x.json"
    write_json(path, "old")
    monkeypatch.setattr(json_files.os, "fsync", refuse)
    with pytest.raises(StorageError) as caught:
        write_json(path, "new")
    assert (remedy in caught.value.remedy, str(path) in caught.value.cause) == (True, True)
    assert read_json(path) == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["x.json"]


def test_stale_part_files_are_removed(tmp_path: Path) -> None:
    old, new, other = tmp_path / ".x.json.abc.part", tmp_path / ".x.json.def.part", tmp_path / "notes.txt"
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 2 * json_files.STALE_SECONDS,) * 2)
    (tmp_path / "folder.part").mkdir()
    remove_stale_parts(tmp_path)
    remove_stale_parts(tmp_path / "absent")
    assert {path.name for path in tmp_path.iterdir()} == {new.name, other.name, "folder.part"}


def test_save_without_usable_lock_file_succeeds(tmp_path: Path) -> None:
    (tmp_path / json_files.LOCK_NAME).mkdir()
    SettingsStore(tmp_path).save()
    assert (tmp_path / "settings.json").exists()


def test_lock_held_by_other_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "TIMEOUT_SECONDS", 0.02)
    with json_files.locked(tmp_path) as first, json_files.locked(tmp_path) as second:
        assert (first, second) == (True, False)
    with json_files.locked(tmp_path) as third:
        assert third


def test_read_of_oversized_file_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "MAX_BYTES", 4)
    (tmp_path / "x.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(UnreadableError, match="larger"):
        read_json(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("mine", "theirs", "together"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 2, "b": 1}),
        ({"a": 3, "b": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 1}),
        ({"a": 1}, {"a": 1, "b": 1, "c": 7}, {"a": 1, "c": 7}),
        ({"a": 1, "b": {"x": 1}}, {"a": 1, "b": {"y": 1}}, {"a": 1, "b": {"y": 1, "x": 1}}),
        ({"a": 1, "b": 1, "set": ["p", "r"]}, {"a": 1, "b": 1, "set": ["p", "q", "s"]},
         {"a": 1, "b": 1, "set": ["p", "s", "r"]}),
    ],
)  # fmt: skip
def test_merge_settings_combines_both_changes(
    mine: dict[str, object], theirs: dict[str, object], together: dict[str, object]
) -> None:
    base = {"a": 1, "b": 1, "set": ["p", "q"]}
    base, mine = (base, mine) if "set" in mine else ({"a": 1, "b": 1}, mine)
    assert merge_settings(base, mine, theirs, {"set"}) == together
