"""Import and export of chats: formats of other programs, damaged files, round trips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decodescope.app.state.conversation import Conversation, ConversationTurn, TurnToken
from decodescope.app.storage.chat_formats import (
    ChatImportError,
    chat_to_json,
    chat_to_markdown,
    parse_chats,
    read_chats,
)

TURNS = [("user", "Hi"), ("assistant", "Yes?")]
OPENAI = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
SHAREGPT = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes?"}]
CHATGPT = {
    "title": "T", "current_node": "c",
    "mapping": {
        "r": {"message": None, "parent": None},
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}, "parent": "r"},
        "b": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["No"]}}, "parent": "a"},
        "c": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Yes?"]}}, "parent": "a"},
    },
}  # fmt: skip


def parsed(data: Any) -> tuple[list[Conversation], list[str]]:
    return parse_chats(data if isinstance(data, bytes) else json.dumps(data).encode())


def turns(chat: Conversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in chat.turns]


@pytest.mark.parametrize(
    "data",
    [
        {"messages": OPENAI},
        OPENAI,
        [{"messages": OPENAI}],
        {"conversations": SHAREGPT},
        [{"id": "x", "conversations": SHAREGPT}],
        SHAREGPT,
        CHATGPT,
        [CHATGPT],
        {"messages": [{"role": "User", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]}, OPENAI[1]]},
        {"custom_id": "1", "body": {"model": "m", "messages": OPENAI}},
        b"\xef\xbb\xbf" + json.dumps({"messages": OPENAI}).encode(),
        b"\n".join(json.dumps(one).encode() for one in ({"messages": OPENAI}, {"messages": OPENAI})) + b"\n\n",
        (json.dumps({"messages": OPENAI}) + "\r\n").encode(),
    ],
    ids=str,
)
def test_format_of_other_program_is_read(data: Any) -> None:
    found, problems = parsed(data)
    assert turns(found[0]) == TURNS
    assert problems == []


def test_system_message_becomes_system_prompt() -> None:
    found, _problems = parsed([{"from": "system", "value": "Be kind"}, *SHAREGPT])
    assert (found[0].system, turns(found[0])) == ("Be kind", TURNS)
    found, _problems = parsed({"system": "Be kind", "conversations": SHAREGPT})
    assert (found[0].system, turns(found[0])) == ("Be kind", TURNS)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"messages": [*OPENAI, {"role": "tool", "content": "x"}]}, 'message 3 of chat 1: its role ("tool")'),
        ({"messages": [*OPENAI, {"content": "x"}]}, "its role (none)"),
        ({"messages": [*OPENAI, 7]}, "message 3 of chat 1: it is not an object"),
        ({"messages": [*OPENAI, {"role": "user", "content": 5}]}, "it contains no text"),
        ({"messages": [*OPENAI, {"role": "user", "content": [{"type": "image_url"}]}]}, "it contains no text"),
        ({"messages": [*OPENAI, {"role": "user", "content": "\ud83d"}]}, "not valid Unicode"),
        ([{"messages": OPENAI}, {"other": 1}], "chat 2 has no list of messages"),
        ([{"messages": OPENAI}, 3], "chat 2 is not an object"),
        (json.dumps({"messages": OPENAI}).encode() + b"\n{cut", "line 2 is not JSON"),
    ],
    ids=str,
)
def test_fault_is_named_and_rest_is_read(data: Any, fault: str) -> None:
    found, problems = parsed(data)
    assert turns(found[0]) == TURNS
    assert fault in problems[0]


def test_many_faults_are_counted() -> None:
    _found, problems = parsed({"messages": [*OPENAI, *[7] * 40]})
    assert (len(problems), problems[-1]) == (6, "and 35 more")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"null", b"[]", b"{}", b'{"messages": []}', b"[" * 100_000, b"7", b'"text"'],
    ids=str,
)
def test_file_without_chat_is_refused_with_cause_and_remedy(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(ChatImportError) as caught:
        read_chats(path)
    assert caught.value.cause
    assert "OpenAI" in caught.value.remedy


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChatImportError, match="missing"):
        read_chats(tmp_path / "missing.json")


def test_circle_in_exported_tree_ends() -> None:
    nodes = {"a": {"message": CHATGPT["mapping"]["a"]["message"], "parent": "b"}, "b": {"message": None, "parent": "a"}}
    found, _problems = parsed({"mapping": nodes, "current_node": "a"})
    assert turns(found[0]) == TURNS[:1]


def own_chat() -> Conversation:
    chat = Conversation(title="T", system="Be kind")
    question = chat.append(ConversationTurn("user", "Hi"))
    chat.append(ConversationTurn("assistant", "No", restored_tokens=(TurnToken(5, "N"), TurnToken(6, "o"))))
    chat.append(ConversationTurn("assistant", "Yes?"), question)
    return chat


def test_own_export_keeps_versions_and_tokens() -> None:
    found, problems = parsed(chat_to_json(own_chat()))
    assert (turns(found[0]), found[0].system, found[0].title, problems) == (TURNS, "Be kind", "T", [])
    other = found[0].show_sibling(found[0].turns[1], -1)
    assert (other.content, [token.id for token in other.tokens]) == ("No", [5, 6])


def test_export_is_readable_as_openai_messages() -> None:
    data = chat_to_json(own_chat())
    assert data["messages"] == [{"role": "system", "content": "Be kind"}, *OPENAI]
    del data["format"]
    assert turns(parsed(data)[0][0]) == TURNS


def test_markdown_has_heading_for_each_turn() -> None:
    assert chat_to_markdown(own_chat()) == ("# T\n\n## System prompt\n\nBe kind\n\n## You\n\nHi\n\n## Answer\n\nYes?\n")


def test_device_is_refused_as_chats() -> None:
    with pytest.raises(ChatImportError, match="not a regular file"):
        read_chats(Path("/dev/zero"))
