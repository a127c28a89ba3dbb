"""Chats as files of other programs: export as JSON and Markdown, import of ShareGPT, OpenAI and own exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from decodescope.app.state.conversation import Conversation, ConversationTurn, title_from
from decodescope.app.storage.chat_store import parse_turns, turn_to_dict, usable_turns
from decodescope.app.storage.json_files import MAX_BYTES, UnreadableError, parse_json
from decodescope.app.storage.settings import is_text
from decodescope.core.errors import DecodescopeError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import mark, tr, trn

FORMAT = "decodescope chat"
_ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "bot": "assistant", "model": "assistant", "chatgpt": "assistant",
    "bing": "assistant", "bard": "assistant",
}  # fmt: skip
"""Role in other programs, in lower case → role here."""
_ROLE_KEYS, _TEXT_KEYS = ("role", "from", "author", "speaker"), ("content", "value", "text", "parts")
MAX_CHATS = 10_000
MAX_PROBLEMS = 5
"""Further problems of one file are counted."""


class ChatImportError(DecodescopeError):
    """A file contains no chat that can be read."""

    title = mark("No chat could be imported")


def chat_to_json(chat: Conversation) -> dict[str, Any]:
    """Return the chat for export: `messages` as OpenAI's API takes them, and all turns with their tokens."""
    system = [{"role": "system", "content": chat.system}] if chat.system else []
    return {
        "format": FORMAT,
        "version": 1,
        "title": chat.name,
        "system": chat.system,
        "messages": [*system, *(turn.message for turn in chat.turns)],
        "turns": [turn_to_dict(turn) for turn in chat.all_turns],
    }


def chat_to_markdown(chat: Conversation) -> str:
    """Return the shown turns as Markdown, each under a heading with its role and an answer's model and adapters."""
    titles = {"system": tr("System prompt"), "user": tr("You"), "assistant": tr("Answer")}
    parts = [f"# {chat.name}"]
    if chat.system:
        parts.append(f"## {titles['system']}\n\n{chat.system}")
    for turn in chat.turns:
        model = f" ({turn.author})" if turn.author else ""
        parts.append(f"## {titles.get(turn.role, turn.role)}{model}\n\n{turn.text}")
    return "\n\n".join(parts) + "\n"


def read_chats(path: Path) -> tuple[list[Conversation], list[str]]:
    """Return the chats of a file, and in words what could not be read. Raises ChatImportError."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe or device may never end
            raise UnreadableError(tr("it is not a regular file"))
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableError(tr("it is larger than {size} MiB").format(size=MAX_BYTES >> 20))
        return parse_chats(path.read_bytes(), path.stem)
    except (OSError, UnreadableError) as error:
        raise ChatImportError(
            tr("{name} could not be read: {why}.").format(name=path.name, why=system_error_reason(error)),
            tr("Choose a JSON or JSONL file in the format of ShareGPT, OpenAI or Decodescope."),
        ) from None


def parse_chats(content: bytes, name: str = "") -> tuple[list[Conversation], list[str]]:
    """Return the chats in the content of a file, and in words what could not be read; `name` is the title of a single
    chat without one. Raises ChatImportError, UnreadableError.
    """
    problems: list[str] = []
    found = [
        chat for number, item in enumerate(_chat_items(content, problems), 1)
        if (chat := _read_chat(item, number, problems)) is not None
    ]  # fmt: skip
    if not found:
        why = problems[0] if problems else tr("it has no messages")
        raise ChatImportError(
            tr("The file contains no chat: {why}.").format(why=why),
            tr(
                "A chat is a list “messages” with “role” and “content” (OpenAI), or “conversations” with “from” and "
                "“value” (ShareGPT)."
            ),
        )
    if len(found) == 1 and not found[0].title and not found[0].turns:
        found[0].title = title_from(name)
    if len(problems) > MAX_PROBLEMS:
        more = len(problems) - MAX_PROBLEMS
        problems[MAX_PROBLEMS:] = [trn("and {n:,} more", "and {n:,} more", more).format(n=more)]
    return found, problems


def _chat_items(content: bytes, problems: list[str]) -> Iterator[Any]:
    """Yield the parts of a file that should be chats: a JSON object or list, or a JSON object on each line."""
    try:
        data = parse_json(content)
    except UnreadableError:
        yield from _lines(content, problems)
        return
    if isinstance(data, list) and data and all(_is_message(item) for item in data):
        yield {"messages": data}
    elif isinstance(data, list):
        yield from data[:MAX_CHATS]
        if len(data) > MAX_CHATS:
            problems.append(tr("only the first {n:,} chats were read").format(n=MAX_CHATS))
    else:
        yield data


def _lines(content: bytes, problems: list[str]) -> Iterator[Any]:
    """Yield the objects of a JSONL file. Raises UnreadableError if no line is JSON."""
    error: UnreadableError | None = None
    count = 0
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            item = parse_json(line)
        except UnreadableError as wrong:
            error = error or wrong
            problems.append(tr("line {n:,} is not JSON").format(n=number))
            continue
        count += 1
        if count > MAX_CHATS:
            problems.append(tr("only the first {n:,} chats were read").format(n=MAX_CHATS))
            return
        yield item
    if not count and error is not None:
        raise error


def _is_message(item: Any) -> bool:
    return isinstance(item, Mapping) and any(key in item for key in _ROLE_KEYS[:2]) and "conversations" not in item


def _read_chat(item: Any, number: int, problems: list[str]) -> Conversation | None:
    """Return one chat; None if it has no messages, which is added to `problems`."""
    where = tr("chat {n:,}").format(n=number)
    if not isinstance(item, Mapping):
        problems.append(tr("{where} is not an object").format(where=where))
        return None
    chat = Conversation()
    title = item.get("title") or item.get("name")
    if is_text(title) and str(title).strip():
        chat.title = title_from(str(title))
    system = item.get("system") or item.get("system_prompt")
    if is_text(system):
        chat.system = str(system)
    if (item.get("format") == FORMAT or "messages" not in item) and (
        root := _own_turns(item, where, problems)
    ) is not None:
        chat.root = root
        return chat
    messages = _messages(item)
    if messages is None:
        problems.append(tr("{where} has no list of messages").format(where=where))
        return None
    for place, message in enumerate(messages, 1):
        role, text, problem = _read_message(message)
        if problem:
            problems.append(tr("message {n:,} of {where}: {problem}").format(n=place, where=where, problem=problem))
        elif role == "system" and not chat.root.replies and chat.system in ("", text):
            chat.system = text
        elif text:
            chat.append(ConversationTurn(role, text))
    return chat if chat.root.replies or chat.system else None


def _own_turns(item: Mapping[str, Any], where: str, problems: list[str]) -> ConversationTurn | None:
    """Return the turns of an own export, or of a file of the settings folder; None if there are none, or if they are
    damaged and it has messages too.
    """
    turns, lost = usable_turns(dict(item))
    if not turns or (lost and "messages" in item):
        return None
    problems += [f"{where}: {problem}" for problem in lost]
    return parse_turns(turns)


def _messages(item: Mapping[str, Any]) -> list[Any] | None:
    """Return the messages of a chat in order; None if there are none."""
    for key in ("messages", "conversations", "conversation", "items", "chat"):
        if isinstance(item.get(key), list):
            return list(item[key])
    if isinstance(item.get("mapping"), Mapping):  # ChatGPT's export is a tree: follow it up from the current node
        return _path_of(item["mapping"], item.get("current_node"))
    request, response = item.get("body"), item.get("response")  # a line of OpenAI's batch input
    if isinstance(request, Mapping) and isinstance(request.get("messages"), list):
        return list(request["messages"])
    choices = (response if isinstance(response, Mapping) else item).get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) and "message" in choices[0]:
        return [choices[0]["message"]]
    return None


def _path_of(nodes: Mapping[str, Any], current: Any) -> list[Any]:
    """Return the messages from the first node to the current one, by default the last."""
    node = current if isinstance(current, str) and current in nodes else next(reversed(list(nodes)), None)
    found, seen = list[Any](), set[str]()
    while isinstance(node, str) and node in nodes and node not in seen and isinstance(nodes[node], Mapping):
        seen.add(node)
        message = nodes[node].get("message")
        if isinstance(message, Mapping) and not _is_hidden(message):
            found.append(message)
        node = nodes[node].get("parent")
    return found[::-1]


def _is_hidden(message: Mapping[str, Any]) -> bool:
    """Return whether it is one of ChatGPT's messages without text, which its window does not show."""
    about = message.get("metadata")
    return (isinstance(about, Mapping) and bool(about.get("is_visually_hidden_from_conversation"))) or not _text_of(
        message
    )[0]


def _read_message(message: Any) -> tuple[str, str, str]:
    """Return role, text, and what is wrong with a message; the latter is empty if nothing is."""
    if not isinstance(message, Mapping):
        return "", "", tr("it is not an object")
    named: Any = next((message[key] for key in _ROLE_KEYS if key in message), None)
    if isinstance(named, Mapping):
        named = named.get("role")
    if not isinstance(named, str) or named.lower() not in _ROLES:
        what = json.dumps(named, ensure_ascii=False)[:40] if named is not None else tr("none")
        return "", "", tr("its role ({role}) has no place in a chat").format(role=what)
    text, left_out = _text_of(message)
    return _ROLES[named.lower()], text, "" if text or not left_out else left_out


def _text_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of a message, and why there is none."""
    content: Any = next((message[key] for key in _TEXT_KEYS if message.get(key) is not None), None)
    if isinstance(content, Mapping):
        content = content.get("parts", content.get("text"))
    if isinstance(content, list):
        texts = [part if isinstance(part, str) else part.get("text") for part in content
                 if isinstance(part, str | Mapping)]  # fmt: skip
        content = "\n".join(text for text in texts if isinstance(text, str) and text)
        if not content:
            return "", tr("it contains no text")
    if not isinstance(content, str):
        return "", tr("it contains no text")
    return (content, "") if is_text(content) else ("", tr("its text is not valid Unicode"))
