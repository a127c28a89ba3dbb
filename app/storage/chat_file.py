"""The chat's file: its turns are there again at the next start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.state.conversation import DROP, POLICIES, ROLES, Conversation, Figures, Turn
from app.storage.settings import Section
from app.storage.settings_file import read_object, set_aside, write_json

FILE_NAME = "chat.json"


def _is_turns(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(turn, dict) and _is_turn(turn) for turn in value)


def _is_turn(turn: dict[str, Any]) -> bool:
    figures = turn.get("figures")
    counted = figures is None or (isinstance(figures, list) and len(figures) == 3 and all(map(_is_count, figures)))
    spoken = turn.get("role") in ROLES and isinstance(turn.get("content"), str)
    return spoken and counted and isinstance(turn.get("held", True), bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_policy(value: Any) -> bool:
    return value in POLICIES


@dataclass(slots=True)
class SavedChat(Section):
    """What the file holds: turns as {role, content, held, figures}, figures as [reused, computed, written]."""

    turns: list[dict[str, Any]] = field(default_factory=list, metadata={"check": _is_turns})
    when_full: str = field(default=DROP, metadata={"check": _is_policy})


class ChatStore:
    """Reads and writes the chat of one folder; `notices` says in words what could not be read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.notices: list[str] = []

    def restore(self, conversation: Conversation) -> None:
        """Put the saved turns into an empty conversation; a file that cannot be used is set aside and named."""
        data, problem = read_object(self.path)
        saved = SavedChat()
        if data and not problem:
            saved, problem = _read(data)
        if problem:
            kept = set_aside(self.path)
            self.notices.append(f"The last chat could not be read ({problem}), so a new one begins. {kept}")
            return
        conversation.turns[:] = [_turn(turn) for turn in saved.turns]
        conversation.when_full = saved.when_full

    def save(self, conversation: Conversation) -> None:
        """Write every turn that is done. Raises OSError."""
        turns = [_plain(turn) for turn in conversation.turns if not turn.is_open]
        write_json(self.path, SavedChat(turns, conversation.when_full).write())


def _read(data: dict[str, Any]) -> tuple[SavedChat, str]:
    try:
        if int(data.get("version", 1)) > SavedChat.version:
            return SavedChat(), "a newer program wrote it"
        saved, bad = SavedChat.read(data)
    except (KeyError, TypeError, ValueError) as error:
        return SavedChat(), str(error)
    return saved, f"not usable: {', '.join(bad)}" if bad else ""


def _turn(plain: dict[str, Any]) -> Turn:
    figures: Sequence[int] | None = plain.get("figures")
    kept = Figures(*figures) if figures is not None else None
    return Turn(plain["role"], plain["content"], held=plain.get("held", True), kept=kept)


def _plain(turn: Turn) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": turn.role, "content": turn.content, "held": turn.held}
    if turn.figures is not None:
        plain["figures"] = list(turn.figures)
    return plain
