"""The saved chats: round trips, unreadable files, several windows, deleting and restoring."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.state.conversation import RESTART, AnswerCost, Conversation, ConversationTurn, TurnToken
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome, RunRequest
from decodescope.app.storage import chat_store
from decodescope.app.storage.chat_formats import chat_to_json, read_chats
from decodescope.app.storage.chat_store import ChatStore, ChatUnavailableError
from decodescope.core.events import PromptToken, RunStarted
from decodescope.core.system import file_writing
from tests.ui.scripted import token

ROOT = Path(__file__).parents[2]


def restored(folder: Path) -> tuple[Conversation, ChatStore]:
    store = ChatStore(folder)
    return store.restore_last(), store


def chat(*texts: str, **fields: Any) -> Conversation:
    talk = Conversation(**fields)
    for number, text in enumerate(texts):
        talk.append(ConversationTurn(("user", "assistant")[number % 2], text))
    return talk


def contents(talk: Conversation) -> list[str]:
    return [turn.content for turn in talk.turns]


def saved(folder: Path, talk: Conversation) -> Conversation:
    """Save a chat as a window does that is then closed."""
    store = ChatStore(folder)
    store.adopt(talk)
    store.save(talk)
    store.release()
    return talk


def test_missing_folder_restores_empty_chat(config_dir: Path) -> None:
    talk, store = restored(config_dir)
    assert (talk.turns, talk.is_empty, store.notices) == ([], True, [])
    assert list(store.summaries()) == []


def test_single_chat_of_an_earlier_version_is_named_once_left_alone_and_importable(config_dir: Path) -> None:
    old = {"version": 1, "when_full": "drop", "turns": [
        {"role": "user", "content": "Hi", "held": True},
        {"role": "assistant", "content": "Hello!", "figures": [1, 2, 3]},
        {"role": "user", "content": "Bye"},
    ]}  # fmt: skip
    config_dir.mkdir(exist_ok=True)
    path = config_dir / "chat.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    talk, store = restored(config_dir)
    assert talk.is_empty
    assert "chat.json" in " ".join(store.notices)
    assert json.loads(path.read_text(encoding="utf-8")) == old
    store.save(chat("Other"))
    assert restored(config_dir)[1].notices == []
    (imported,), problems = read_chats(path)
    assert (contents(imported), problems) == (["Hi", "Hello!", "Bye"], [])
    path.write_text(json.dumps({**old, "turns": [*old["turns"], {"role": 5}]}), encoding="utf-8")
    (imported,), problems = read_chats(path)
    assert contents(imported) == ["Hi", "Hello!", "Bye"]
    assert problems == ["chat 1: 1 turn could not be read"]


def test_saved_chat_is_restored_unchanged(config_dir: Path) -> None:
    talk = Conversation(when_full=RESTART, title="T", system="Be kind", draft="half a mess", settings={"seed": 3})
    talk.append(ConversationTurn("user", "Grüß dich\n„du“", is_in_context=False))
    first = talk.append(ConversationTurn("assistant", "Yes", restored_cost=AnswerCost(3, 4, 5), restored_run_id="ab12",
                                         restored_tokens=(TurnToken(7, "Y"), TurnToken(9, ""), TurnToken(8, "es")),
                                         made_with={"strategy": "greedy"}))  # fmt: skip
    talk.append(ConversationTurn("user", "And?"))
    talk.append(ConversationTurn("assistant", "No"), first.parent)
    talk.append(ConversationTurn("assistant", "half an ans", is_open=True))
    saved(config_dir, talk)
    again, store = restored(config_dir)
    assert [(turn.role, turn.content, turn.is_in_context) for turn in again.turns] == [
        ("user", "Grüß dich\n„du“", False), ("assistant", "No", True)
    ]  # fmt: skip
    assert (again.when_full, again.title, again.system, again.draft) == (RESTART, "T", "Be kind", "half a mess")
    assert (again.id, again.settings, again.created, store.notices) == (talk.id, {"seed": 3}, talk.created, [])
    shown = again.show_sibling(again.turns[1], -1)
    assert (shown.answer_cost, shown.run_id, shown.made_with) == ((3, 4, 5), "ab12", {"strategy": "greedy"})
    assert shown.tokens == first.tokens
    assert contents(again) == ["Grüß dich\n„du“", "Yes", "And?"]


def test_long_chat_is_restored_without_deep_nesting(config_dir: Path) -> None:
    saved(config_dir, chat(*(f"turn {number}" for number in range(2000))))
    assert len(restored(config_dir)[0].turns) == 2000


@pytest.mark.parametrize("text", ["{not json", "[]", "[" * 100_000], ids=["cut", "list", "deep"])
def test_unreadable_file_is_set_aside(config_dir: Path, text: str) -> None:
    path = saved(config_dir, chat("Hi")).id
    file = config_dir / "chats" / f"{path}.json"
    file.write_text(text, encoding="utf-8")
    talk, store = restored(config_dir)
    assert talk.turns == []
    aside = file.with_name(f"{file.name}.bad-1")
    assert aside.read_text(encoding="utf-8") == text
    assert aside.name in store.notices[0]
    assert not file.exists()


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
        ({"turns": [{**GOOD, "tokens": ["1 2", "3"]}]}, "statistics"),
        ({"turns": [{**GOOD, "tokens": ["1 x", "3 4"]}]}, "statistics"),
        ({"turns": [{**GOOD, "made_with": 3}]}, "statistics"),
        ({"turns": [{**GOOD, "parent": 3}]}, "statistics"),
        ({"turns": [GOOD], "when_full": ["drop"]}, "full context"),
        ({"turns": [GOOD], "title": 5}, "title could not be read"),
        ({"turns": [GOOD], "settings": []}, "settings could not be read"),
        ({"turns": [GOOD], "version": 99}, "it was written by a newer version of Decodescope"),
        ({"turns": [GOOD], "version": 1e999}, "version is not a number"),
    ],
    ids=str,
)
def test_invalid_value_is_dropped_and_rest_is_kept(config_dir: Path, data: dict[str, Any], why: str) -> None:
    (config_dir / "chats").mkdir()
    file = config_dir / "chats" / "a.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    talk, store = restored(config_dir)
    assert [(turn.role, turn.content, turn.is_in_context, turn.answer_cost) for turn in talk.turns] == [
        ("user", "Hello", True, None)
    ]
    assert why in store.notices[0]
    assert json.loads(file.with_name("a.json.bad-1").read_text(encoding="utf-8")) == data


@pytest.mark.parametrize(
    "turns",
    [
        [{**GOOD, "id": "a", "parent": "missing"}],
        [{**GOOD, "id": "a", "parent": "a"}],
        [{**GOOD, "id": "a"}, {**GOOD, "id": "a", "parent": "a"}],
        [{**GOOD, "id": "a", "parent": "b"}, {**GOOD, "id": "b", "parent": "a"}],
        [{**GOOD, "tokens": ["1 2", "9 9"]}],
    ],
)
def test_inconsistent_turns_are_read_without_loss(config_dir: Path, turns: list[dict[str, Any]]) -> None:
    (config_dir / "chats").mkdir()
    (config_dir / "chats" / "a.json").write_text(json.dumps({"turns": turns}), encoding="utf-8")
    talk, _store = restored(config_dir)
    assert len(list(talk.all_turns)) == len(turns)
    assert all(turn.tokens == () for turn in talk.all_turns)


def test_migration_keeps_copy_of_old_file(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (config_dir / "chats").mkdir()
    file = config_dir / "chats" / "a.json"
    text = '{"version": 1,  "said": [{"role": "user", "content": "Hello"}]}'
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(chat_store, "VERSION", 2)
    monkeypatch.setattr(chat_store, "MIGRATORS", {1: lambda data: {"version": 2, "turns": data["said"]}})
    talk, store = restored(config_dir)
    assert (contents(talk), store.notices) == (["Hello"], [])
    store.save(talk)
    assert file.with_name("a.json.old-1").read_text(encoding="utf-8") == text


def test_failed_migration_keeps_file_unchanged(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (config_dir / "chats").mkdir()
    file = config_dir / "chats" / "a.json"
    file.write_text('{"version": 1,  "turns": []}', encoding="utf-8")
    monkeypatch.setattr(chat_store, "VERSION", 2)
    monkeypatch.setattr(chat_store, "MIGRATORS", {1: lambda data: {"turns": data["no such key"]}})
    talk, store = restored(config_dir)
    assert talk.turns == []
    assert "data of version 1 could not be read" in store.notices[0]
    assert file.read_text(encoding="utf-8") == '{"version": 1,  "turns": []}'


def test_last_opened_chat_is_restored(config_dir: Path) -> None:
    first, second = saved(config_dir, chat("One")), saved(config_dir, chat("Two"))
    talk, store = restored(config_dir)
    assert contents(talk) == ["Two"]
    assert contents(store.open(first.id)) == ["One"]
    store.release()
    assert contents(restored(config_dir)[0]) == ["One"]
    assert second.id != first.id


def test_list_finds_words_of_all_turns(config_dir: Path) -> None:
    saved(config_dir, chat("About whales", "They SING"))
    saved(config_dir, chat("About owls", "They hoot", title="Birds"))
    (config_dir / "chats" / "broken.json").write_text("{", encoding="utf-8")
    store = ChatStore(config_dir)
    found = list(store.summaries())
    assert [(one.name, one.turns) for one in found] == [("Birds", 2), ("About whales", 2)]
    assert [one.name for one in found if one.matches("sing whales")] == ["About whales"]
    assert [one.name for one in found if one.matches("birds")] == ["Birds"]


def test_renamed_chat_keeps_its_turns(config_dir: Path) -> None:
    talk = saved(config_dir, chat("Hi", "Yes"))
    store = ChatStore(config_dir)
    store.rename(talk.id, "Greetings")
    assert next(store.summaries()).name == "Greetings"
    assert contents(store.read(talk.id)) == ["Hi", "Yes"]


def test_deleted_chat_is_restored_until_window_closes(config_dir: Path) -> None:
    talk = saved(config_dir, chat("Hi"))
    store = ChatStore(config_dir)
    store.delete(talk.id)
    assert list(store.summaries()) == []
    assert store.undelete() == talk.id
    assert contents(store.read(talk.id)) == ["Hi"]
    store.delete(talk.id)
    store.commit_deletions()
    assert store.undelete() == ""
    assert [path.name for path in (config_dir / "chats").iterdir()] == [".lock"]


def test_chat_open_elsewhere_is_refused(config_dir: Path) -> None:
    talk = saved(config_dir, chat("Hi"))
    mine, store = restored(config_dir)
    other = ChatStore(config_dir)
    assert contents(mine) == ["Hi"]
    assert other.restore_last().turns == []
    assert other.is_last_elsewhere
    for change in (other.open, other.delete, lambda name: other.rename(name, "x")):
        with pytest.raises(ChatUnavailableError, match="another window"):
            change(talk.id)
    store.release()
    assert contents(other.open(talk.id)) == ["Hi"]


_OTHER = """
import sys
from pathlib import Path
from decodescope.app.state.conversation import ConversationTurn
from decodescope.app.storage.chat_store import ChatStore
store = ChatStore(Path(sys.argv[1]))
talk = store.restore_last()
print([turn.content for turn in talk.turns], flush=True)
for line in sys.stdin:
    talk.append(ConversationTurn("user", line.strip()))
    store.save(talk)
    print("saved", flush=True)
"""


def start_other_window(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _OTHER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def reply_of(other: subprocess.Popen[str], words: str = "") -> str:
    assert other.stdin is not None
    assert other.stdout is not None
    if words:
        other.stdin.write(words + "\n")
        other.stdin.flush()
    return other.stdout.readline().strip()


def test_killed_window_loses_nothing_and_leaves_chat_free(config_dir: Path) -> None:
    saved(config_dir, chat("Hi"))
    other = start_other_window(config_dir)
    assert reply_of(other) == "['Hi']"
    assert reply_of(other, "More") == "saved"
    with pytest.raises(ChatUnavailableError):
        ChatStore(config_dir).open(next(ChatStore(config_dir).summaries()).id)
    other.kill()  # its lock goes with it
    other.communicate()
    talk, store = restored(config_dir)
    assert (contents(talk), store.is_last_elsewhere) == (["Hi", "More"], False)


def test_windows_without_locks_keep_turns_of_both(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(file_writing, "try_lock", refuse)
    saved(config_dir, chat("Hello"))
    (mine, my_store), (yours, your_store) = restored(config_dir), restored(config_dir)
    for words in ("Mine", "Yours", "Mine again", "Bye"):
        talk, store = (mine, my_store) if words.startswith("Mine") else (yours, your_store)
        talk.append(ConversationTurn("user", words))
        store.save(talk)
    last = ChatStore(config_dir).read(mine.id)
    assert {turn.content for turn in last.all_turns} == {"Hello", "Mine", "Mine again", "Yours", "Bye"}
    assert contents(last) == ["Hello", "Yours", "Bye"]
    for words in ("Later", "At last"):  # the file does not change in between
        yours.append(ConversationTurn("user", words))
        your_store.save(yours)
    assert len(list(ChatStore(config_dir).read(mine.id).all_turns)) == 7


def test_thinking_that_special_tokens_marked_outlives_a_restart(config_dir: Path) -> None:
    """The text of the answer has no marks, so that it alone does not separate thinking and answer."""
    run = Run(RunRequest(({"role": "user", "content": "Why?"},)))
    pieces = ("<think>", "It", " may", ".", "</think>", "Be", "cause", ".")
    marks = [n for n, piece in enumerate(pieces) if piece.startswith("<")]
    events = [token(n, "" if n in marks else piece, piece=piece, special=n in marks) for n, piece in enumerate(pieces)]
    started = RunStarted("greedy", "m", "cpu", "float32", "dynamic", 0, (PromptToken(1, "Why?"),), (), 1, 100, 512)
    run.apply([started, *events])
    run.outcome = Outcome("completed")
    talk = Conversation()
    talk.start_answer(run)
    talk.finish_answer(run)
    sent = {"role": "assistant", "content": "Because.", "reasoning_content": "It may."}
    assert (talk.turns[-1].content, talk.turns[-1].message) == ("It may.Because.", sent)
    saved(config_dir, talk)
    again, _ = restored(config_dir)
    assert again.turns[-1].message == sent == chat_to_json(again)["messages"][-1]
    assert again.turns[-1].thinking.thinking == "It may."
    talk.append(ConversationTurn("user", "<think>a</think>b"))
    assert talk.turns[-1].message == {"role": "user", "content": "<think>a</think>b"}
