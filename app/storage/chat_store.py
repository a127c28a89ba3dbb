"""The saved chats, one JSON file each, in the folder `chats`.

A window holds the lock of its open chat, so that two windows never write the same one. Where the folder does not
support locks, two windows may write one file: each then keeps the turns that the other has added.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from decodescope.app.state.conversation import (
    DROP,
    POLICIES,
    ROLES,
    AnswerCost,
    ChatSummary,
    Conversation,
    ConversationTurn,
    TurnToken,
    new_id,
)
from decodescope.app.state.setting_values import is_count, is_number
from decodescope.app.storage.json_files import (
    StorageError,
    UnreadableError,
    exclusive_writer,
    keep_copy,
    read_object,
    remove_stale_parts,
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
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.thinking import AnswerThinking
from decodescope.resources.language import join_names, mark, tr, trn

FOLDER = "chats"
VERSION = 1
MIGRATORS: Mapping[int, Migrator] = {}
"""Item n migrates data from version n to version n + 1."""
DELETED_SUFFIX = ".deleted"
DELETED_SECONDS = 24 * 3600
"""Age from which a deleted chat, left by a program that was killed, is removed for good."""
_are_valid_figures = list_of_counts(3, 2**53)
TurnDict = dict[str, Any]
"""A turn as it is saved: id, parent, role, content, held (whether it is in the context), shown, and for an answer
figures ([reused, computed, written]), run, tokens (ids and lengths of their texts, as text), made_with, and thinking
([thinking, answer]) if its text alone does not tell them apart.
"""


class ChatUnavailableError(StorageError):
    """A saved chat cannot be opened or changed now."""

    title = mark("This chat cannot be opened")


class ChatStore:
    """Read and write the chats of one folder; `notices` lists in words what could not be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self.notices: list[str] = []
        self.is_last_elsewhere = False
        """Whether another window had the last chat open when this one was started."""
        self._id = ""
        self._lock: HeldLock | None = None
        self._stamp: Stamp | None = None
        """That of the open chat's file when it was last read or written."""
        self._known_turns: set[str] = set()
        """Turns that the open chat has or had in this window; others were added by another window."""
        self._others: list[TurnDict] = []
        """The turns of other windows that were in the open chat's file when it was last written."""
        self._summaries: dict[str, tuple[Stamp, ChatSummary]] = {}
        self._deleted: list[str] = []

    def take_notices(self) -> list[str]:
        """Return the notices and clear them."""
        taken, self.notices = self.notices, []
        return taken

    # The open chat

    def restore_last(self) -> Conversation:
        """Open the chat that was written or opened last; return a new one if there is none, or if another window has
        it open. What cannot be read is set aside and named in `notices`.
        """
        self._report_single_chat()
        self._purge()
        latest = max(self._files(), key=_modified, default=None)
        if latest is not None:
            try:
                return self._open(latest.stem)
            except HeldElsewhereError:
                self.is_last_elsewhere = True
            except (UnreadableError, MigrationError, FileNotFoundError) as problem:
                kept = keep_copy(latest) if isinstance(problem, MigrationError) else set_aside(latest)
                self.notices.append(
                    tr("The last chat could not be read ({problem}). A new one was started. {kept}").format(
                        problem=problem, kept=kept
                    )
                )
        return self.adopt(Conversation())

    def open(self, chat: str) -> Conversation:
        """Open a saved chat instead of the current one. Raises ChatUnavailableError."""
        try:
            return self._open(chat)
        except HeldElsewhereError:
            raise ChatUnavailableError(
                tr("This chat is open in another window."), tr("Close it there, or continue there.")
            ) from None
        except FileNotFoundError:
            raise ChatUnavailableError(tr("Its file no longer exists.")) from None
        except (UnreadableError, MigrationError) as problem:
            path = self._path(chat)
            kept = keep_copy(path) if isinstance(problem, MigrationError) else set_aside(path)
            raise ChatUnavailableError(
                tr("It could not be read: {problem}.").format(problem=system_error_reason(problem)), kept
            ) from None

    def adopt(self, chat: Conversation) -> Conversation:
        """Make a new chat the open one and return it; the first `save` writes its file."""
        self.release()
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(HeldElsewhereError):
            self._lock = acquire_file(self._lock_path(chat.id))
        self._id, self._stamp, self._known_turns, self._others = chat.id, None, set(), []
        return chat

    def save(self, chat: Conversation) -> None:
        """Write a chat: every turn (an unfinished answer as far as it has come) and, for the open chat, the turns added
        by other windows. Raises StorageError.
        """
        path, data = self._path(chat.id), _chat_to_dict(chat)
        ids = {turn["id"] for turn in data["turns"]}
        with exclusive_writer(self.folder):
            if chat.id == self._id:
                others = [turn for turn in self._foreign_turns(path) if turn["id"] not in ids | self._known_turns]
                self._others = [{**turn, "shown": False} for turn in others]
                data["turns"] += self._others
            write_json(path, data)
            if chat.id == self._id:  # while no other window can write it
                self._stamp = _stamp(path)
                self._known_turns |= ids

    def release(self) -> None:
        """Release the open chat for other windows."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(OSError):  # Windows does not delete an open file
                lock.path.unlink()
            lock.release()
        self._id = ""

    def remove_file(self, chat: str) -> None:
        """Remove the file of an empty chat."""
        with suppress(OSError):
            self._path(chat).unlink()

    # The list

    def summaries(self, opened: Conversation | None = None) -> Iterator[ChatSummary]:
        """Yield the opened chat, then all saved ones, those changed last first. Unreadable files are left out; opening
        the chat names the reason. Files that have not changed are not read again.
        """
        if opened is not None:
            yield _summary(opened, time.time())
        files = sorted(((_stamp(path), path) for path in self._files()), key=lambda item: item[0] or (0, 0, 0))
        for stamp, path in reversed(files):
            known = self._summaries.get(path.stem)
            if stamp is None or (opened is not None and path.stem == opened.id):
                continue
            if known is None or known[0] != stamp:
                try:
                    data = self._read(path)
                    updated = float(data["updated"]) if is_number(data.get("updated")) else 0.0
                    known = stamp, _summary(_parse_chat(data, path.stem)[0], updated)
                except (OSError, UnreadableError, MigrationError):
                    continue
                self._summaries[path.stem] = known
            yield known[1]

    def read(self, chat: str) -> Conversation:
        """Return a saved chat without opening it. Raises ChatUnavailableError."""
        try:
            return _parse_chat(self._read(self._path(chat)), chat)[0]
        except (OSError, UnreadableError, MigrationError) as problem:
            raise ChatUnavailableError(
                tr("It could not be read: {problem}.").format(problem=system_error_reason(problem))
            ) from None

    def rename(self, chat: str, title: str) -> None:
        """Give a chat that is not open a title; empty for the beginning of its first message. Raises StorageError."""
        with self._locked(chat):
            conversation = self.read(chat)
            conversation.title = title
            self.save(conversation)

    def delete(self, chat: str) -> None:
        """Remove a chat that is not open from the list; `undelete` restores it. Raises StorageError."""
        with self._locked(chat):
            path = self._path(chat)
            try:
                os.replace(path, path.with_name(path.name + DELETED_SUFFIX))
            except FileNotFoundError:
                return
            except OSError as error:
                raise ChatUnavailableError(
                    tr("It cannot be deleted: {problem}.").format(problem=system_error_reason(error))
                ) from None
            self._deleted.append(chat)

    @property
    def can_undelete(self) -> bool:
        """Whether a deleted chat can be restored."""
        return bool(self._deleted)

    def undelete(self) -> str:
        """Restore the chat that was deleted last; return its id, or an empty string."""
        if not self._deleted:
            return ""
        chat = self._deleted.pop()
        path = self._path(chat)
        with suppress(OSError):
            os.replace(path.with_name(path.name + DELETED_SUFFIX), path)
        return chat

    def commit_deletions(self) -> None:
        """Remove the deleted chats for good."""
        deleted, self._deleted = self._deleted, []
        for chat in deleted:
            path = self._path(chat)
            with suppress(OSError):
                path.with_name(path.name + DELETED_SUFFIX).unlink()

    def _open(self, chat: str) -> Conversation:
        """Raises HeldElsewhereError, FileNotFoundError, UnreadableError, MigrationError."""
        path = self._path(chat)
        lock = acquire_file(self._lock_path(chat))
        try:
            stamp = _stamp(path)
            conversation, problems = _parse_chat(self._read(path), chat)
        except BaseException:
            if lock is not None:
                with suppress(OSError):
                    lock.path.unlink()
                lock.release()
            raise
        if problems:
            self.notices.append(
                tr("The chat “{name}” could be read only in part: {problems}. {kept}").format(
                    name=conversation.name, problems="; ".join(problems), kept=keep_copy(path)
                )
            )
        self.release()
        self._id, self._lock, self._stamp = chat, lock, stamp
        self._known_turns, self._others = {turn.id for turn in conversation.all_turns}, []
        with suppress(OSError):
            now = time.time_ns()
            os.utime(path, ns=(now, now))  # the last one at the next start
        self._stamp = _stamp(path)
        return conversation

    def _read(self, path: Path) -> TurnDict:
        """Return the file's content, migrated to the current version after a copy is kept. Raises FileNotFoundError,
        UnreadableError, MigrationError.
        """
        data = read_object(path)
        try:
            is_old = version_of(data) < VERSION
        except MigrationError:  # no version: the turns may still be usable
            return data
        plain = migrate(data, VERSION, MIGRATORS)
        if is_old:
            keep_copy(path, "old")
        return plain

    def _foreign_turns(self, path: Path) -> list[TurnDict]:
        """Return the turns in the open chat's file, if another window has written it since. An unreadable file is set
        aside.
        """
        stamp = _stamp(path)
        if stamp is not None and stamp == self._stamp:
            return self._others
        try:
            return usable_turns(self._read(path))[0]
        except FileNotFoundError:
            return []
        except (UnreadableError, MigrationError) as problem:
            keep_copy(path) if isinstance(problem, MigrationError) else set_aside(path)
            return []

    def _locked(self, chat: str) -> _ChatLock:
        return _ChatLock(self._lock_path(chat))

    def _files(self) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if path.suffix == ".json" and not path.name.startswith(".")]
        except OSError:
            return []

    def _path(self, chat: str) -> Path:
        return self.folder / f"{chat}.json"

    def _lock_path(self, chat: str) -> Path:
        return self.folder / f"{chat}.lock"

    def _report_single_chat(self) -> None:
        """At the first start with a list of chats, name the chat of a program that had one only; its file stays."""
        if self.folder.is_dir():
            return
        found = sorted(path.name for path in self.folder.parent.glob("chat*.json"))
        if found:
            self.notices.append(
                tr(
                    "The settings folder has a chat of an earlier version: {names}. It is unchanged. Read it with "
                    "“Import chats…” in the menu of the list of chats."
                ).format(names=join_names(found))
            )

    def _purge(self) -> None:
        """Remove what killed programs left: partial files, and chats deleted a day ago."""
        if not self.folder.is_dir():
            return
        remove_stale_parts(self.folder)
        with suppress(OSError):
            for path in self.folder.glob(f"*{DELETED_SUFFIX}"):
                if time.time() - path.stat().st_mtime > DELETED_SECONDS:
                    path.unlink()


class _ChatLock:
    """Holds the lock of a chat that is not open. Raises ChatUnavailableError if another window has it open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: HeldLock | None = None

    def __enter__(self) -> None:
        try:
            self._lock = acquire_file(self._path)
        except HeldElsewhereError:
            raise ChatUnavailableError(
                tr("This chat is open in another window."), tr("Close it there first.")
            ) from None

    def __exit__(self, *_exception: object) -> None:
        if self._lock is not None:
            with suppress(OSError):
                self._path.unlink()
            self._lock.release()


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


Stamp = tuple[int, int, int]
"""Time, size and number of a file, which differ after it was written again."""


def _stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if it does not exist."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino


def _summary(chat: Conversation, updated: float) -> ChatSummary:
    texts = [chat.title, chat.system, *(turn.content for turn in chat.all_turns)]
    return ChatSummary(chat.id, chat.name, updated, len(chat.turns), "\n".join(texts).casefold())


def _chat_to_dict(chat: Conversation) -> TurnDict:
    return {
        "version": VERSION,
        "title": chat.title,
        "created": chat.created,
        "updated": time.time(),
        "system": chat.system,
        "draft": chat.draft,
        "when_full": chat.when_full,
        "settings": dict(chat.settings),
        "turns": [
            turn_to_dict(turn) for turn in chat.all_turns if not turn.is_open or (turn.run is not None and turn.text)
        ],
    }


def turn_to_dict(turn: ConversationTurn) -> TurnDict:
    """Return a turn as it is saved."""
    plain: TurnDict = {
        "id": turn.id,
        "parent": turn.parent.id if turn.parent is not None and turn.parent.parent is not None else "",
        "role": turn.role,
        "content": turn.text,
        "held": turn.is_in_context,
        "shown": turn.parent is None or turn.number == turn.parent.shown_reply + 1,
    }
    if turn.answer_cost is not None:
        plain["figures"] = list(turn.answer_cost)
    if turn.run_id:
        plain["run"] = turn.run_id
    if turn.made_with:
        plain["made_with"] = dict(turn.made_with)
    if tokens := turn.tokens:  # as text: a list with a number on each line would be ten times longer
        plain["tokens"] = [" ".join(str(token.id) for token in tokens), " ".join(str(len(t.text)) for t in tokens)]
    if (thinking := turn.thinking_without_marks) is not None:
        plain["thinking"] = [thinking.thinking, thinking.body]
    return plain


def parse_turns(found: Sequence[TurnDict]) -> ConversationTurn:
    """Return the root of the turns, which were saved by `turn_to_dict` and checked."""
    root = ConversationTurn("root")
    by_id: dict[str, ConversationTurn] = {"": root}
    last = root
    for data in found:
        parent = by_id.get(data["parent"], last) if "parent" in data else last
        turn = _turn_from_dict(data)
        if turn.id in by_id:
            turn.id = new_id()
        by_id[turn.id] = last = turn
        turn.parent = parent
        parent.replies.append(turn)
        if data.get("shown", True):
            parent.shown_reply = len(parent.replies) - 1
    return root


def _parse_chat(data: TurnDict, chat: str) -> tuple[Conversation, list[str]]:
    """Return the chat, and in words what could not be used."""
    problems = _version_problems(data)
    turns, turn_problems = usable_turns(data)
    problems += turn_problems
    result = Conversation(id=chat, root=parse_turns(turns))
    checks = {"title": is_text, "system": is_text, "draft": is_text, "created": is_number, "settings": _is_object}
    for name, check in checks.items():
        if name in data and check(data[name]):
            setattr(result, name, data[name])
        elif name in data:
            problems.append(tr("its {part} could not be read").format(part=name))
    if "when_full" in data:
        if isinstance(data["when_full"], str) and data["when_full"] in POLICIES:
            result.when_full = data["when_full"]
        else:
            result.when_full = DROP
            problems.append(tr("the setting for a full context could not be read"))
    return result, problems


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def usable_turns(data: TurnDict) -> tuple[list[TurnDict], list[str]]:
    """Return the usable turns of saved data, and in words what could not be used."""
    problems: list[str] = []
    found = data.get("turns", [])
    if not isinstance(found, list):
        return [], [tr("the turns are not a list")]
    usable = [turn for turn in found if _is_turn(turn)]
    if lost := len(found) - len(usable):
        problems.append(trn("{lost} turn could not be read", "{lost} turns could not be read", lost).format(lost=lost))
    turns = [_repaired_turn(turn) for turn in usable]
    if turns != usable:
        problems.append(tr("some turns had statistics that could not be read"))
    return turns, problems


def _version_problems(data: TurnDict) -> list[str]:
    try:
        return [tr("it was written by a newer version of Decodescope")] if version_of(data) > VERSION else []
    except MigrationError as error:
        return [str(error)]


def _is_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and turn.get("role") in ROLES and is_text(turn.get("content"))


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_text, value)) and _numbers(value) is not None


def _numbers(value: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return pairs of id and length; None if the texts are not two lists of equally many numbers."""
    try:
        ids, lengths = ([int(number) for number in text.split()] for text in value)
    except ValueError:
        return None
    return list(zip(ids, lengths, strict=True)) if len(ids) == len(lengths) and all(map(is_count, ids)) else None


def _are_two_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_text, value))


_TURN_CHECKS = {
    "id": is_text,
    "parent": is_text,
    "held": is_flag,
    "shown": is_flag,
    "figures": _are_valid_figures,
    "run": is_text,
    "tokens": _are_tokens,
    "made_with": _is_object,
    "thinking": _are_two_texts,
}


def _repaired_turn(turn: TurnDict) -> TurnDict:
    """Return the turn without its unusable fields."""
    return {name: value for name, value in turn.items() if name not in _TURN_CHECKS or _TURN_CHECKS[name](value)}


def _turn_from_dict(plain: TurnDict) -> ConversationTurn:
    figures: Sequence[int] | None = plain.get("figures")
    return ConversationTurn(
        plain["role"],
        plain["content"],
        is_in_context=plain.get("held", True),
        restored_cost=AnswerCost(*figures) if figures is not None else None,
        id=plain.get("id") or new_id(),
        restored_run_id=plain.get("run", ""),
        restored_tokens=_tokens_of(plain),
        restored_thinking=AnswerThinking(*plain["thinking"]) if "thinking" in plain else None,
        made_with=plain.get("made_with", {}),
    )


def _tokens_of(plain: TurnDict) -> tuple[TurnToken, ...]:
    """Return the tokens of a saved answer; none if they do not spell its text."""
    at, found = 0, []
    for token, length in _numbers(plain.get("tokens", ("", ""))) or ():
        found.append(TurnToken(token, plain["content"][at : at + length]))
        at += length
    return tuple(found) if at <= len(plain["content"]) else ()
