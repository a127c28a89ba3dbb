"""The chat's file: what is written is read back, what cannot be read is set aside and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.state.conversation import ANEW, DROP, Conversation, Figures, Turn
from app.storage.chat_file import ChatStore


def restored(folder: Path) -> tuple[Conversation, ChatStore]:
    talk, store = Conversation(), ChatStore(folder)
    store.restore(talk)
    return talk, store


def test_without_a_file_there_is_no_chat(config_dir: Path) -> None:
    talk, store = restored(config_dir)
    assert (talk.turns, talk.when_full, store.notices) == ([], DROP, [])


def test_round_trip(config_dir: Path) -> None:
    talk = Conversation(when_full=ANEW)
    talk.turns = [
        Turn("system", "Be kind"),
        Turn("user", "Grüß dich\n„du“", held=False),
        Turn("assistant", "Yes", kept=Figures(3, 4, 5)),
        Turn("user", "And?"),
        Turn("assistant", "half an ans", is_open=True),
    ]
    ChatStore(config_dir).save(talk)
    again, store = restored(config_dir)
    assert [(turn.role, turn.content, turn.held) for turn in again.turns] == [
        (turn.role, turn.content, turn.held) for turn in talk.turns[:4]
    ]
    assert (again.when_full, again.turns[2].figures, store.notices) == (ANEW, (3, 4, 5), [])
    assert again.turns[2].cost == "3 tokens reused · 4 computed · 5 written"
    assert again.used > 12


@pytest.mark.parametrize(
    "data",
    [
        "{not json",
        "[]",
        {"turns": [{"role": "pirate", "content": "Arr"}]},
        {"turns": [{"role": "user", "content": 3}]},
        {"turns": [{"role": "assistant", "content": "", "figures": [1, 2]}]},
        {"turns": [{"role": "assistant", "content": "", "figures": [1, 2, -3]}]},
        {"turns": "none"},
        {"when_full": "explode"},
        {"version": 99, "turns": []},
        {"version": "x", "turns": []},
    ],
    ids=str,
)
def test_a_file_that_cannot_be_used_is_set_aside(config_dir: Path, data: Any) -> None:
    path, text = config_dir / "chat.json", data if isinstance(data, str) else json.dumps(data)
    path.write_text(text, encoding="utf-8")
    talk, store = restored(config_dir)
    assert (talk.turns, talk.when_full) == ([], DROP)
    (aside,) = config_dir.glob("chat.broken-*.json")
    assert aside.read_text(encoding="utf-8") == text
    assert aside.name in store.notices[0]
    assert not path.exists()
