"""Save the chat to disk and restore it at the next start.

Each open window has its own file (`claim_chat`): the first `chat.json`, the second `chat-2.json`, and so on. Where the
folder does not support locks, two windows may write one file: each then keeps the turns the other has added, marked as
not read by its own model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decodescope.app.state.conversation import DROP, POLICIES, ROLES, AnswerCost, Conversation, ConversationTurn
from decodescope.app.storage.json_files import (
    UnreadableError,
    exclusive_writer,
    keep_copy,
    read_object,
    set_aside,
    write_json,
)
from decodescope.app.storage.settings import (
    MigrationError,
    Migrator,
    is_flag,
    is_text,
    list_of_counts,
    migrate,
    version_of,
)
from decodescope.core.system.file_writing import HeldElsewhereError, HeldLock, acquire_file
from decodescope.resources.language import tr, trn

FILE_NAME = "chat.json"
MAX_WINDOWS = 100
VERSION = 1
MIGRATORS: Mapping[int, Migrator] = {}
"""Item n migrates data from version n to version n + 1."""
_are_valid_figures = list_of_counts(3, 2**53)
TurnDict = dict[str, Any]
"""A turn as {role, content, held, figures}; figures are [reused, computed, written]."""


class ChatStore:
    """Read and write the chat of one folder; `notices` lists in words what could not be read."""

    def __init__(self, folder: Path, number: int = 1, lock: HeldLock | None = None) -> None:
        """`number` is the window's index among the open ones; `lock` excludes other windows until `release`."""
        self.path = _path(folder, number)
        self.number = number
        self.notices: list[str] = []
        self._lock = lock
        self._own_turns: list[TurnDict] = []
        """The turns last read or written by this window: other turns in the file belong to another window."""

    def restore(self, conversation: Conversation) -> None:
        """Load the saved turns into an empty conversation. Unusable data is skipped, copied to a backup file and named
        in `notices`.
        """
        try:
            data = self._read()
        except FileNotFoundError:
            return
        except (UnreadableError, MigrationError) as problem:
            backup_note = self._put_aside(problem)
            self.notices.append(
                tr("The last chat could not be read ({problem}). A new one was started. {kept}").format(
                    problem=problem, kept=backup_note
                )
            )
            return
        turns, when_full, problems = _parse_chat(data)
        if problems:
            self.notices.append(
                tr("The last chat could be read only in part: {problems}. {kept}").format(
                    problems="; ".join(problems), kept=keep_copy(self.path)
                )
            )
        self._own_turns = turns
        conversation.turns[:] = [_turn_from_dict(turn) for turn in turns]
        conversation.when_full = when_full

    def save(self, conversation: Conversation) -> None:
        """Write every turn (an unfinished answer as far as it has come) and the turns added by other windows. Raises
        StorageError.
        """
        own = [_turn_to_dict(turn) for turn in conversation.turns if not turn.is_open or (turn.run and turn.text)]
        with exclusive_writer(self.path.parent):
            theirs = self._read_turns()
            others = _turns_missing_from(theirs, self._own_turns)
            place = _common_prefix_length(theirs, own)
            turns = [*own[:place], *({**turn, "held": False} for turn in others), *own[place:]]
            write_json(self.path, {"version": VERSION, "turns": turns, "when_full": conversation.when_full})
            self._own_turns = own

    def release(self) -> None:
        """Release the file for other windows."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def _read(self) -> TurnDict:
        """Return the file's content, migrated to the current version after a copy is kept. Raises FileNotFoundError,
        UnreadableError, MigrationError.
        """
        data = read_object(self.path)
        try:
            is_old = version_of(data) < VERSION
        except MigrationError:  # no version: the turns may still be usable
            return data
        plain = migrate(data, VERSION, MIGRATORS)
        if is_old:
            keep_copy(self.path, "old")
        return plain

    def _put_aside(self, problem: Exception) -> str:
        """Move an unreadable file aside; leave a file of another version in place and keep a copy of it."""
        return keep_copy(self.path) if isinstance(problem, MigrationError) else set_aside(self.path)

    def _read_turns(self) -> list[TurnDict]:
        """Return the turns now in the file. An unreadable file is set aside first."""
        try:
            turns, _when_full, problems = _parse_chat(self._read())
        except FileNotFoundError:
            return []
        except (UnreadableError, MigrationError) as problem:
            self._put_aside(problem)
            return []
        if problems:
            keep_copy(self.path)
        return turns


def claim_chat(folder: Path) -> ChatStore:
    """Claim the folder's first chat file that no other window has open, until `release`.

    A separate lock file beside the chat file becomes free when the window's process ends.
    """
    for number in range(1, MAX_WINDOWS):
        try:
            return ChatStore(folder, number, acquire_file(_path(folder, number).with_suffix(".lock")))
        except HeldElsewhereError:
            continue
    return ChatStore(folder, MAX_WINDOWS)


def separate_chat_notice(store: ChatStore) -> str:
    """Return why this is not the chat the user had open last; empty if it is."""
    if store.number == 1 or not _path(store.path.parent, 1).exists():
        return ""
    return tr(
        "The last chat is open in another window. This window has its own chat, saved in {name}. It "
        "returns the next time two windows are open."
    ).format(name=store.path.name)


def _path(folder: Path, number: int) -> Path:
    return folder / (FILE_NAME if number == 1 else f"chat-{number}.json")


def _parse_chat(data: dict[str, Any]) -> tuple[list[TurnDict], str, list[str]]:
    """Return the usable turns, the policy for a full context, and in words what could not be used."""
    problems = _version_problems(data)
    found = data.get("turns", [])
    if not isinstance(found, list):
        found, problems = [], [*problems, tr("the turns are not a list")]
    turns = [_repaired_turn(turn) for turn in found if _is_turn(turn)]
    if lost := len(found) - len(turns):
        problems.append(trn("{lost} turn could not be read", "{lost} turns could not be read", lost).format(lost=lost))
    if any(mended != turn for mended, turn in zip(turns, filter(_is_turn, found), strict=True)):
        problems.append(tr("some turns had statistics that could not be read"))
    when_full = data.get("when_full", DROP)
    if when_full not in POLICIES:
        when_full, problems = DROP, [*problems, tr("the setting for a full context could not be read")]
    return turns, when_full, problems


def _version_problems(data: dict[str, Any]) -> list[str]:
    try:
        return [tr("it was written by a newer version of Decodescope")] if version_of(data) > VERSION else []
    except MigrationError as error:
        return [str(error)]


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and turn.get("role") in ROLES and is_text(turn.get("content"))


def _repaired_turn(turn: TurnDict) -> TurnDict:
    """Return the turn without its unusable fields."""
    bad = {
        name
        for name, is_usable in (("held", is_flag), ("figures", _are_valid_figures))
        if name in turn and not is_usable(turn[name])
    }
    return {name: value for name, value in turn.items() if name not in bad}


def _turn_from_dict(plain: TurnDict) -> ConversationTurn:
    figures: Sequence[int] | None = plain.get("figures")
    cost = AnswerCost(*figures) if figures is not None else None
    return ConversationTurn(plain["role"], plain["content"], is_in_context=plain.get("held", True), restored_cost=cost)


def _turn_to_dict(turn: ConversationTurn) -> TurnDict:
    plain: TurnDict = {"role": turn.role, "content": turn.text, "held": turn.is_in_context}
    if turn.answer_cost is not None:
        plain["figures"] = list(turn.answer_cost)
    return plain


def _turn_key(turn: TurnDict) -> tuple[str, str]:
    return turn["role"], turn["content"]


def _turns_missing_from(turns: Sequence[TurnDict], known_turns: Sequence[TurnDict]) -> list[TurnDict]:
    """Return those of `turns` that are not in `known_turns`; each known turn matches at most one."""
    left = Counter(map(_turn_key, known_turns))
    others = []
    for turn in turns:
        if left[_turn_key(turn)]:
            left[_turn_key(turn)] -= 1
        else:
            others.append(turn)
    return others


def _common_prefix_length(theirs: Sequence[TurnDict], own: Sequence[TurnDict]) -> int:
    """Count the turns that both lists begin with."""
    pairs = zip(map(_turn_key, theirs), map(_turn_key, own), strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(len(theirs), len(own)))
