"""The chat file: a round trip, and unreadable files are set aside and reported."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.state.conversation import DROP, RESTART, AnswerCost, Conversation, ConversationTurn
from decodescope.app.storage import chat_file
from decodescope.app.storage.chat_file import ChatStore, claim_chat, separate_chat_notice
from decodescope.core.system import file_writing

ROOT = Path(__file__).parents[2]


def restored(folder: Path) -> tuple[Conversation, ChatStore]:
    talk, store = Conversation(), ChatStore(folder)
    store.restore(talk)
    return talk, store


def test_missing_file_restores_empty_chat(config_dir: Path) -> None:
    talk, store = restored(config_dir)
    assert (talk.turns, talk.when_full, store.notices) == ([], DROP, [])


def test_saved_chat_is_restored_unchanged(config_dir: Path) -> None:
    talk = Conversation(when_full=RESTART)
    talk.turns = [
        ConversationTurn("system", "Be kind"),
        ConversationTurn("user", "Grüß dich\n„du“", is_in_context=False),
        ConversationTurn("assistant", "Yes", restored_cost=AnswerCost(3, 4, 5)),
        ConversationTurn("user", "And?"),
        ConversationTurn("assistant", "half an ans", is_open=True),
    ]
    ChatStore(config_dir).save(talk)
    again, store = restored(config_dir)
    assert [(turn.role, turn.content, turn.is_in_context) for turn in again.turns] == [
        (turn.role, turn.content, turn.is_in_context) for turn in talk.turns[:4]
    ]
    assert (again.when_full, again.turns[2].answer_cost, store.notices) == (RESTART, (3, 4, 5), [])
    assert again.turns[2].cost_text == "3 tokens reused · 4 computed · 5 written"
    assert again.used_tokens > 12


@pytest.mark.parametrize(
    "data",
    [
        "{not json",
        "[]",
        "[" * 100_000,
    ],
    ids=["cut", "list", "deep"],
)
def test_unreadable_file_is_set_aside(config_dir: Path, data: Any) -> None:
    path, text = config_dir / "chat.json", data if isinstance(data, str) else json.dumps(data)
    path.write_text(text, encoding="utf-8")
    talk, store = restored(config_dir)
    assert (talk.turns, talk.when_full) == ([], DROP)
    aside = config_dir / "chat.json.bad-1"
    assert aside.read_text(encoding="utf-8") == text
    assert aside.name in store.notices[0]
    assert not path.exists()


GOOD = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"turns": [GOOD, {"role": "pirate", "content": "Arr"}]}, "1 turn could not be read"),
        ({"turns": [{"role": "user", "content": 3}, GOOD, 7, None]}, "3 turns could not be read"),
        ({"turns": [GOOD, {"role": "user", "content": "half a \ud83d"}]}, "1 turn could not be read"),
        ({"turns": [{**GOOD, "figures": [1, 2]}]}, "statistics"),
        ({"turns": [{**GOOD, "figures": [1, 2, -3]}]}, "statistics"),
        ({"turns": [{**GOOD, "held": "yes"}]}, "statistics"),
        ({"turns": [GOOD], "when_full": ["drop"]}, "full context"),
        ({"turns": [GOOD], "version": 99}, "it was written by a newer version of Decodescope"),
        ({"turns": [GOOD], "version": 1e999}, "version is not a number"),
    ],
    ids=str,
)
def test_invalid_value_is_dropped_and_rest_is_kept(config_dir: Path, data: dict[str, Any], why: str) -> None:
    (config_dir / "chat.json").write_text(json.dumps(data), encoding="utf-8")
    talk, store = restored(config_dir)
    assert [(turn.role, turn.content, turn.is_in_context, turn.answer_cost) for turn in talk.turns] == [
        ("user", "Hello", True, None)
    ]
    assert (talk.when_full, why in store.notices[0]) == (DROP, True)
    assert json.loads((config_dir / "chat.json.bad-1").read_text(encoding="utf-8")) == data


def _use_version_two(monkeypatch: pytest.MonkeyPatch, migrator: Any) -> None:
    monkeypatch.setattr(chat_file, "VERSION", 2)
    monkeypatch.setattr(chat_file, "MIGRATORS", {1: migrator})


def test_migration_keeps_copy_of_old_file(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"version": 1,  "said": [{"role": "user", "content": "Hello"}]}'
    (config_dir / "chat.json").write_text(text, encoding="utf-8")
    _use_version_two(monkeypatch, lambda data: {"version": 2, "turns": data["said"]})
    talk, store = restored(config_dir)
    assert ([turn.content for turn in talk.turns], store.notices) == (["Hello"], [])
    store.save(talk)
    assert (config_dir / "chat.json.old-1").read_text(encoding="utf-8") == text
    assert [turn.content for turn in restored(config_dir)[0].turns] == ["Hello"]
    assert not (config_dir / "chat.json.old-2").exists()


def test_failed_migration_keeps_file_unchanged(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"version": 1,  "turns": []}'
    (config_dir / "chat.json").write_text(text, encoding="utf-8")
    _use_version_two(monkeypatch, lambda data: {"turns": data["no such key"]})
    talk, store = restored(config_dir)
    assert talk.turns == []
    assert "data of version 1 could not be read" in store.notices[0]
    assert (config_dir / "chat.json").read_text(encoding="utf-8") == text
    store.save(talk)
    assert (config_dir / "chat.json.bad-1").read_text(encoding="utf-8") == text


def test_turns_of_wrong_type_are_reported(config_dir: Path) -> None:
    (config_dir / "chat.json").write_text('{"turns": "none"}', encoding="utf-8")
    talk, store = restored(config_dir)
    assert (talk.turns, "the turns are not a list" in store.notices[0]) == ([], True)


def test_saves_of_two_windows_keep_turns_of_both(config_dir: Path) -> None:
    Path(config_dir / "chat.json").write_text(json.dumps({"turns": [GOOD]}), encoding="utf-8")
    (result, my_store), (yours, your_store) = restored(config_dir), restored(config_dir)
    for words in ("Mine", "Yours", "Mine again", "Bye"):
        talk, store = (result, my_store) if words.startswith("Mine") else (yours, your_store)
        talk.turns.append(ConversationTurn("user", words))
        store.save(talk)
    last, _ = restored(config_dir)
    assert [turn.content for turn in last.turns] == ["Hello", "Mine", "Mine again", "Yours", "Bye"]
    assert [turn.is_in_context for turn in last.turns] == [True, False, False, True, True]
    result.clear()
    my_store.save(result)
    assert [turn.content for turn in restored(config_dir)[0].turns] == ["Yours", "Bye"]


_OTHER = """
import sys
from pathlib import Path
from decodescope.app.state.conversation import Conversation, ConversationTurn
from decodescope.app.storage.chat_file import claim_chat
store, talk = claim_chat(Path(sys.argv[1])), Conversation()
store.restore(talk)
print(store.path.name, [turn.content for turn in talk.turns], flush=True)
for line in sys.stdin:
    talk.turns.append(ConversationTurn("user", line.strip()))
    store.save(talk)
    print("saved", flush=True)
"""


def start_claiming_process(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _OTHER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def describe_reply(other: subprocess.Popen[str], words: str = "") -> str:
    assert other.stdin is not None
    assert other.stdout is not None
    if words:
        other.stdin.write(words + "\n")
        other.stdin.flush()
    return other.stdout.readline().strip()


def test_each_process_claims_its_own_chat_file(config_dir: Path) -> None:
    result, talk = claim_chat(config_dir), Conversation()
    others = [start_claiming_process(config_dir), start_claiming_process(config_dir)]
    assert sorted(map(describe_reply, others)) == ["chat-2.json []", "chat-3.json []"]
    for number in range(3):
        talk.turns.append(ConversationTurn("user", f"mine {number}"))
        result.save(talk)
        for other in others:
            assert describe_reply(other, f"other {number}") == "saved"
    for other in others:
        other.kill()  # its lock goes with it
        other.communicate()
    assert [turn.content for turn in restored(config_dir)[0].turns] == ["mine 0", "mine 1", "mine 2"]
    assert separate_chat_notice(result) == ""
    second = claim_chat(config_dir)
    assert (second.path.name, "chat-2.json" in separate_chat_notice(second)) == ("chat-2.json", True)
    result.release()
    result.release()
    third = start_claiming_process(config_dir)
    assert describe_reply(third) == "chat.json ['mine 0', 'mine 1', 'mine 2']"
    third.kill()
    third.communicate()
    second.release()


def test_claim_chat_without_lock_support_uses_default_file(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(file_writing, "try_lock", refuse)
    assert [claim_chat(config_dir).path.name for _ in range(2)] == ["chat.json", "chat.json"]
