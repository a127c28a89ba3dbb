"""A chat: its turns, their cost, and how much of the model's context they use. No Qt in here.

The turns are a tree: a message may have several answers, and a turn may be written in several ways. Every turn knows
which of its replies is shown, and the shown turns are the path from the first turn to a turn without replies.

In the plain text form, a line that begins with a role's name starts a turn.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from decodescope.app.state.run import Run
from decodescope.core import adapters, cut_short
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.thinking import AnswerThinking, split_text
from decodescope.resources.language import tr, trn

ROLES = ("system", "user", "assistant")
_TURN = re.compile(rf"^({'|'.join(ROLES)}):[ \t]*", re.IGNORECASE)
DROP, RESTART = "drop", "anew"
POLICIES = (DROP, RESTART)
"""Policies for a full context: drop the oldest turns, or all of them."""
MAX_ANSWER_DIVISOR = 4
"""At most 1/n of the context is reserved for the answer."""
DEFAULT_CHARACTERS_PER_TOKEN = 3.0
"""Initial estimate of characters per token, until an answer shows the actual ratio."""
TEMPLATE_TOKENS_PER_TURN = 4
"""Estimated number of template tokens per turn."""

MAX_TITLE = 60
"""Maximum length of a title taken from the first message, in characters."""
_NOT_SETTINGS = frozenset({"prompt", "beginning", "media", "parent", "place", "scored", "second", "prompt_text"})
"""Fields of a request that belong to one turn instead of the settings it was made with."""

CONTINUE, SAVE, SEND = "continue", "save", "send"
"""What to do with an edited turn: continue an answer, save it as it is, or answer a message."""
Message = Mapping[str, str]


def parse(text: str) -> tuple[dict[str, str], ...]:
    """Parse `text` into turns; text before the first role is the user's. Empty turns are left out."""
    turns: list[tuple[str, list[str]]] = [("user", [])]
    for line in text.split("\n"):
        opening = _TURN.match(line)
        if opening:
            turns.append((opening[1].lower(), [line[opening.end() :]]))
        else:
            turns[-1][1].append(line)
    stripped_turns = ((role, "\n".join(lines).strip(" \t\r\n")) for role, lines in turns)
    return tuple({"role": role, "content": content} for role, content in stripped_turns if content)


def format_turns(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the text that `parse` converts back to `messages`."""
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in messages)


def last_user_message(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the user's last message, or the last message if the user has none."""
    contents = [turn["content"] for turn in messages if turn["role"] == "user"] or [t["content"] for t in messages[-1:]]
    return contents[-1] if contents else ""


def trim(
    messages: Sequence[Message],
    context: int,
    answer_tokens: int,
    when_full: str,
    count: Callable[[Sequence[Message]], int],
) -> tuple[Message, ...]:
    """Return the messages that fit into `context` tokens with `answer_tokens` tokens reserved for the answer; `count`
    counts tokens.

    The oldest are dropped up to the next user message, or all but the new ones (`RESTART`). System messages and the
    messages to be answered stay, even if they alone are too long.
    """
    if count(messages) + answer_tokens <= context:
        return tuple(messages)
    answer_indices = [n for n, turn in enumerate(messages) if turn["role"] == "assistant"]
    new = answer_indices[-1] + 1 if answer_indices else 0
    starts = [] if when_full == RESTART else [n for n in range(1, new) if messages[n]["role"] == "user"]
    for start in starts:
        if count(remaining := _from(messages, start)) + answer_tokens <= context:
            return remaining
    return _from(messages, new)


def _from(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    rules = (turn for turn in messages[:start] if turn["role"] == "system")
    return (*rules, *messages[start:])


class AnswerCost(NamedTuple):
    """Cost of an answer in tokens."""

    reused: int
    """Prompt tokens reused from an earlier run."""
    computed: int
    """Prompt tokens computed for this answer."""
    written: int


class TurnToken(NamedTuple):
    """A token of an answer."""

    id: int
    text: str
    """The characters that it completes; empty for control tokens and for parts of a character."""


def new_id() -> str:
    """Return a new id of a turn or a chat: 16 hexadecimal digits."""
    return os.urandom(8).hex()


def settings_of(run: Run) -> dict[str, Any]:
    """Return the settings that a run was made with, in the format of `app.state.request_json`."""
    from decodescope.app.state.request_json import request_to_json  # the start does not need it

    return {name: value for name, value in request_to_json(run.request).items() if name not in _NOT_SETTINGS}


def adapters_in(settings: Mapping[str, Any]) -> list[str]:
    """Return the adapters in saved settings by name, each with its strength unless that is 1."""
    found = settings.get("adapters")
    return [
        adapters.adapter_name(str(path)) + ("" if strength == 1 else f" × {strength:g}")
        for path, strength in (one for one in (found if isinstance(found, list | tuple) else ()) if _is_adapter(one))
    ]


def _is_adapter(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], int | float)


@plain(eq=False)
class ConversationTurn:
    """A message of the chat, and the turns that reply to it.

    `run` is the run that wrote an answer; None for messages, for texts written by hand, and after a restart.
    """

    role: str
    content: str = ""
    run: Run | None = None
    is_in_context: bool = True
    """Whether the model still reads it."""
    is_open: bool = False
    """Whether it is still being written."""
    restored_cost: AnswerCost | None = None
    """Cost of an answer restored from an earlier session."""
    id: str = field(default_factory=new_id)
    parent: ConversationTurn | None = None
    replies: list[ConversationTurn] = field(default_factory=list)
    shown_reply: int = 0
    """Index of the shown one of `replies`."""
    restored_run_id: str = ""
    """Id of the run that wrote an answer restored from an earlier session; empty if none did."""
    restored_tokens: tuple[TurnToken, ...] = ()
    """Tokens of an answer restored from an earlier session."""
    restored_thinking: AnswerThinking | None = None
    """Thinking of an answer restored from an earlier session whose text does not contain its marks."""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the answer was made with, in the format of `app.state.request_json`; empty if no run wrote it."""

    @property
    def text(self) -> str:
        """Its text; while it is being written, the text so far."""
        if not self.is_open or self.run is None or not self.run.sequences:
            return self.content
        return self.run.sequences[self.run.shown_index].text

    @property
    def thinking(self) -> AnswerThinking:
        """The answer, its thinking split off: by the tokens of its run if they are known, otherwise by its text."""
        if self._is_of_run:
            assert self.run is not None
            return self.run.thinking_of(self.run.shown_index)
        return self.restored_thinking or split_text(self.content)

    @property
    def thinking_without_marks(self) -> AnswerThinking | None:
        """The answer, its thinking split off, if its text alone does not separate them: special tokens marked it."""
        if self.role != "assistant" or not (found := self.thinking).thinking:
            return None
        return found if found[:2] != split_text(self.text)[:2] else None

    @property
    def thinking_tokens(self) -> int:
        """Number of tokens of an answer whose tokens are known; otherwise 0."""
        return len(self.run.tokens) if self._is_of_run and self.run is not None else 0

    @property
    def _is_of_run(self) -> bool:
        """Whether the content is the text of the run, not edited since."""
        return self.run is not None and self.run.sequence.text == self.content

    @property
    def message(self) -> dict[str, str]:
        """The message as chat templates expect it: thinking that special tokens marked is no part of the content."""
        if (found := self.thinking_without_marks) is not None:
            return {"role": self.role, "content": found.body, "reasoning_content": found.thinking}
        return {"role": self.role, "content": self.text}

    @property
    def run_id(self) -> str:
        """Id of the run that wrote it; empty if none did."""
        return self.run.id if self.run is not None else self.restored_run_id

    @property
    def model(self) -> str:
        """Name of the model that wrote it; empty if none did."""
        return str(self.made_with.get("load", {}).get("model", ""))

    @property
    def author(self) -> str:
        """Model and adapters that wrote it, such as `storyteller + pirate × 0.5`; empty if no run did."""
        return " + ".join(
            [name for name in (Path(self.model).name.removesuffix(".gguf"),) if name] + adapters_in(self.made_with)
        )

    @property
    def is_author_new(self) -> bool:
        """Whether model and adapters differ from those of the answer before; without one, whether it has adapters."""
        before = self.parent
        while before is not None and not before.author:
            before = before.parent
        return bool(adapters_in(self.made_with)) if before is None else self.author not in ("", before.author)

    @property
    def tokens(self) -> tuple[TurnToken, ...]:
        """All tokens of an answer, those that were given to it included; empty if they are unknown."""
        if self.run is None:
            return self.restored_tokens
        begun = (TurnToken(token.id, token.text) for token in self.run.beginning)
        return (*begun, *(TurnToken(token.id, token.text) for token in self.run.tokens))

    @property
    def siblings(self) -> Sequence[ConversationTurn]:
        """This turn and the others in its place: other answers to the same message, other wordings of a message."""
        return self.parent.replies if self.parent is not None else (self,)

    @property
    def number(self) -> int:
        """Its number among `siblings`, starting at 1."""
        return self.siblings.index(self) + 1

    @property
    def answer_cost(self) -> AnswerCost | None:
        """Cost of the answer; None if no run wrote it, or before the prefill."""
        if self.run is None or self.run.prefilled is None:
            return self.restored_cost
        reused = self.run.prefilled.reused
        is_elsewhere = self.run.started is not None and bool(self.run.started.engine)
        read = self.run.prefilled.tokens if is_elsewhere else len(self.run.before)
        return AnswerCost(reused, read - reused, len(self.run.tokens))

    @property
    def reused(self) -> int:
        """Prompt tokens reused from an earlier run."""
        return self.answer_cost.reused if self.answer_cost is not None else 0

    @property
    def computed(self) -> int:
        """Prompt tokens computed for this answer."""
        return self.answer_cost.computed if self.answer_cost is not None else 0

    @property
    def written(self) -> int:
        """Tokens of the answer."""
        return self.answer_cost.written if self.answer_cost is not None else 0

    @property
    def cost_text(self) -> str:
        """`41 tokens reused · 12 computed · 30 written`; empty if no run wrote it, or before the prefill."""
        if self.answer_cost is None:
            return ""
        return trn(
            "{reused:,} token reused · {computed:,} computed · {written:,} written",
            "{reused:,} tokens reused · {computed:,} computed · {written:,} written",
            self.reused,
        ).format(reused=self.reused, computed=self.computed, written=self.written)

    def beginning_for(self, text: str, is_same_model: bool = True) -> tuple[int | str, ...]:
        """Return `text` as the beginning of another answer: the ids of the tokens that this answer shares with it, then
        the rest as text.

        The shared part keeps its tokens exactly. Ids mean nothing to another model, which gets the text alone.
        """
        ids: list[int] = []
        pending: list[int] = []  # tokens without characters of their own belong to the next one that has some
        at = 0
        for token in self.tokens if is_same_model else ():
            if not text.startswith(token.text, at):
                break
            pending.append(token.id)
            if token.text:
                ids += pending
                pending, at = [], at + len(token.text)
        return (*ids, text[at:]) if text[at:] else tuple(ids)


@plain(eq=False)
class Conversation:
    """A chat. `context` is the model's context length in tokens; None if unlimited."""

    context: int | None = None
    when_full: str = DROP
    id: str = field(default_factory=new_id)
    title: str = ""
    """Title given by the user; empty for the beginning of the first message."""
    system: str = ""
    """System prompt; empty for none."""
    draft: str = ""
    """Message in the editor that has not been sent."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the latest answer, in the format of `app.state.request_json`; empty before the first."""
    created: float = field(default_factory=time.time)
    """When it was created, in seconds since 1970 (UTC)."""
    root: ConversationTurn = field(default_factory=lambda: ConversationTurn("root"))
    """A turn without content, which the first turns reply to."""

    @property
    def turns(self) -> list[ConversationTurn]:
        """The shown turns in order, as a new list."""
        found, turn = [], self.root
        while turn.replies:
            turn = turn.replies[min(turn.shown_reply, len(turn.replies) - 1)]
            found.append(turn)
        return found

    @property
    def all_turns(self) -> Iterator[ConversationTurn]:
        """Yield all turns, shown or not, each after the one it replies to."""
        pending = [*reversed(self.root.replies)]
        while pending:
            turn = pending.pop()
            yield turn
            pending += reversed(turn.replies)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written into it."""
        return not (self.root.replies or self.title or self.system or self.draft.strip())

    @property
    def name(self) -> str:
        """Its title, or the beginning of the first message on one line."""
        first = next((turn.content for turn in self.turns if turn.role == "user" and turn.content.strip()), "")
        return self.title or title_from(first) or tr("New chat")

    def append(self, turn: ConversationTurn, after: ConversationTurn | None = None) -> ConversationTurn:
        """Add a reply to `after`, by default to the last shown turn, and show it; return it."""
        turns = self.turns
        parent = after if after is not None else turns[-1] if turns else self.root
        turn.parent = parent
        parent.replies.append(turn)
        parent.shown_reply = len(parent.replies) - 1
        return turn

    def remove(self, turn: ConversationTurn) -> None:
        """Remove a turn with its replies, and show the one before it in its place."""
        parent = turn.parent
        if parent is not None and turn in parent.replies:
            number = parent.replies.index(turn)
            parent.replies.remove(turn)
            if parent.shown_reply >= number:
                parent.shown_reply = max(0, parent.shown_reply - 1)

    def show_sibling(self, turn: ConversationTurn, step: int) -> ConversationTurn:
        """Show the sibling `step` places after a turn, at most the first or last, with its replies; return it."""
        parent = turn.parent
        if parent is None:
            return turn
        place = min(max(parent.replies.index(turn) + step, 0), len(parent.replies) - 1)
        parent.shown_reply = place
        return parent.replies[place]

    def turn_of_run(self, run_id: str) -> ConversationTurn | None:
        """Return the turn that the run with this id wrote."""
        return next((turn for turn in self.all_turns if run_id and turn.run_id == run_id), None)

    @property
    def turns_in_context(self) -> list[ConversationTurn]:
        """The shown turns that are still in the context."""
        return [turn for turn in self.turns if turn.is_in_context]

    @property
    def used_tokens(self) -> int:
        """Context tokens used by the held turns, including an unfinished answer."""
        held = self.turns_in_context
        last = next((n for n in range(len(held) - 1, -1, -1) if held[n].answer_cost is not None), None)
        if last is None:
            system = [ConversationTurn("system", self.system)] if self.system else []
            return self._estimate_tokens([*system, *held])
        cost = held[last].answer_cost
        return sum(cost or ()) + self._estimate_tokens(held[last + 1 :])

    @property
    def is_open(self) -> bool:
        """Whether an answer is being written."""
        turns = self.turns
        return bool(turns) and turns[-1].is_open

    @property
    def can_regenerate(self) -> bool:
        """Whether there is a finished answer to regenerate."""
        turns = self.turns
        return len(turns) > 1 and turns[-1].role == "assistant" and not turns[-1].is_open

    def with_turns(self, new: Sequence[Message]) -> tuple[dict[str, str], ...]:
        """Return the messages for the next run: the system prompt, the held turns and the `new` ones; empty if there is
        nothing to answer.
        """
        held = self.turns_in_context
        if not new and (not held or held[-1].role == "assistant"):
            return ()
        return (*self._system_message, *(turn.message for turn in held), *(dict(turn) for turn in new))

    def messages_before(self, turn: ConversationTurn) -> tuple[dict[str, str], ...]:
        """Return the messages that a shown turn replies to, with the system prompt."""
        held = self.turns_in_context
        before = held[: held.index(turn)] if turn in held else self.turns[: self.turns.index(turn)]
        return (*self._system_message, *(one.message for one in before))

    @property
    def _system_message(self) -> tuple[dict[str, str], ...]:
        return ({"role": "system", "content": self.system},) if self.system else ()

    def start_answer(self, run: Run) -> tuple[dict[str, str], ...]:
        """Show an answer of `run` that has only begun: after the turns that its prompt repeats, and the new messages,
        which are returned.

        An answer to a message that has one already becomes another answer next to the old one.
        """
        messages = [dict(turn) for turn in run.request.prompt if isinstance(turn, Mapping)]
        if messages and messages[0]["role"] == "system" and messages[0]["content"] == self.system:
            del messages[0]
        held = self.turns_in_context
        count = next(
            (n for n, (turn, message) in enumerate(zip(held, messages, strict=False)) if turn.message != message),
            min(len(held), len(messages)),
        )
        last = held[count - 1] if count else self.root
        new = tuple(messages[count:])
        for message in new:
            last = self.append(ConversationTurn(message["role"], message["content"]), last)
        self.settings = settings_of(run)
        self.append(ConversationTurn("assistant", run=run, is_open=True, made_with=self.settings), last)
        return new

    def mark_trimmed(self, run: Run) -> None:
        """Mark turns as no longer held if the run's prompt was trimmed."""
        prompt_turns = self.turns_in_context[:-1]
        prompt = run.request.prompt
        length = len(prompt)
        if self.system and prompt and isinstance(prompt[0], Mapping) and prompt[0]["role"] == "system":
            length -= 1
        rest = next(
            (rest for n in range(len(prompt_turns) + 1) if len(rest := _after(prompt_turns, n)) == length),
            prompt_turns,
        )
        for turn in prompt_turns:
            turn.is_in_context = turn in rest

    def finish_answer(self, run: Run) -> None:
        """Finish an answer with the run's text; an empty answer of a failed run is removed."""
        turn = next((turn for turn in self.turns[-1:] if turn.run is run), None) or self.turn_of_run(run.id)
        if turn is None or turn.run is not run or not turn.is_open:
            return
        turn.content, turn.is_open = run.sequences[run.shown_index].text, False
        if not run.tokens and run.outcome is not None and run.outcome.kind == "failed":
            self.remove(turn)

    def clear(self) -> None:
        """Remove all turns."""
        self.root.replies.clear()
        self.root.shown_reply = 0

    def _estimate_tokens(self, turns: Sequence[ConversationTurn]) -> int:
        """Estimate the number of tokens of these turns from the characters per token of this chat's answers."""
        if not turns:
            return 0
        return sum(self.estimate_tokens(turn.content) + TEMPLATE_TOKENS_PER_TURN for turn in turns)

    def estimate_tokens(self, text: str) -> int:
        """Estimate the number of tokens of a text from the characters per token of this chat's answers."""
        answers = [turn for turn in self.turns if turn.written and turn.content]
        tokens, characters = sum(turn.written for turn in answers), sum(len(turn.content) for turn in answers)
        return round(len(text) / (characters / tokens if tokens else DEFAULT_CHARACTERS_PER_TOKEN))


class ChatSummary(NamedTuple):
    """One saved chat, as shown in a list."""

    id: str
    name: str
    """Its title, or the beginning of the first message."""
    updated: float
    """When it was written last, in seconds since 1970 (UTC)."""
    turns: int
    searchable_text: str
    """Title and texts of all turns, with case folded."""

    def matches(self, search: str) -> bool:
        """Return whether it contains all words of `search`."""
        return all(word in self.searchable_text for word in search.casefold().split())


def title_from(text: str) -> str:
    """Return the beginning of a text on one line, as a title."""
    return cut_short(" ".join(text[: 8 * MAX_TITLE].split()), MAX_TITLE)


def _after(turns: Sequence[ConversationTurn], count: int) -> list[ConversationTurn]:
    """Return the turns without the first `count`; system turns always stay."""
    return [*(turn for turn in turns[:count] if turn.role == "system"), *turns[count:]]
