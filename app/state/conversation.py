"""A chat: its turns, their cost, and how much of the model's context they use. No Qt in here.

In the plain text form, a line that begins with a role's name starts a turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from decodescope.app.state.run import Run
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.thinking import AnswerThinking, split_text
from decodescope.resources.language import trn

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


@plain(eq=False)
class ConversationTurn:
    """A message of the chat. `run` is the run that wrote an answer; `is_in_context`: whether it is still in the
    context.
    """

    role: str
    content: str = ""
    run: Run | None = None
    is_in_context: bool = True
    is_open: bool = False
    """Whether it is still being written."""
    restored_cost: AnswerCost | None = None
    """Cost of an answer restored from an earlier session."""

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
        return split_text(self.content)

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
        """The message as chat templates expect it."""
        return {"role": self.role, "content": self.content}

    @property
    def answer_cost(self) -> AnswerCost | None:
        """Cost of the answer; None if no run wrote it, or before the prefill."""
        if self.run is None or self.run.prefilled is None:
            return self.restored_cost
        reused = self.run.prefilled.reused
        is_elsewhere = self.run.started is not None and bool(self.run.started.engine)
        read = self.run.prefilled.tokens if is_elsewhere else len(self.run.prompt)
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


@plain(eq=False)
class Conversation:
    """The turns so far. `context` is the model's context length in tokens; None if unlimited."""

    turns: list[ConversationTurn] = field(default_factory=list)
    context: int | None = None
    when_full: str = DROP

    @property
    def turns_in_context(self) -> list[ConversationTurn]:
        """The turns that are still in the context."""
        return [turn for turn in self.turns if turn.is_in_context]

    @property
    def used_tokens(self) -> int:
        """Context tokens used by the held turns, including an unfinished answer."""
        answers = [turn for turn in self.turns_in_context if turn.answer_cost is not None]
        if not answers:
            return self._estimate_tokens(self.turns_in_context)
        last = answers[-1]
        return (
            last.reused
            + last.computed
            + last.written
            + self._estimate_tokens(self.turns_in_context[self.turns_in_context.index(last) + 1 :])
        )

    @property
    def is_open(self) -> bool:
        """Whether an answer is being written."""
        return bool(self.turns) and self.turns[-1].is_open

    @property
    def can_regenerate(self) -> bool:
        """Whether there is a finished answer to regenerate."""
        return len(self.turns) > 1 and self.turns[-1].role == "assistant" and not self.is_open

    @property
    def can_edit(self) -> bool:
        """Whether there is a user message to edit and no answer is being written."""
        return not self.is_open and any(turn.role == "user" for turn in self.turns_in_context)

    def with_turns(self, new: Sequence[Message]) -> tuple[dict[str, str], ...]:
        """Return the messages for the next run: the held turns and the `new` ones; empty if there is nothing to
        answer.
        """
        if not new and self.turns_in_context and self.turns_in_context[-1].role == "assistant":
            return ()
        return (*(turn.message for turn in self.turns_in_context), *(dict(turn) for turn in new))

    def start_answer(self, run: Run) -> tuple[dict[str, str], ...]:
        """Start an answer: append the run's new messages (returned) and an empty answer to the turns.

        Messages that end before the last answer regenerate it; turns before the first message are no longer held.
        """
        messages = [dict(turn) for turn in run.request.prompt if isinstance(turn, Mapping)]
        held = self.turns_in_context
        rest = next(
            rest for n in range(len(held) + 1) if (rest := _repeated_turns(_after(held, n), messages)) is not None
        )
        if held and held[-1].role == "assistant" and rest and rest[-1] is held[-2]:
            self.turns.remove(held[-1])
        for turn in held:
            turn.is_in_context = turn in rest
        new = tuple(messages[len(rest) :])
        self.turns += [ConversationTurn(turn["role"], turn["content"]) for turn in new]
        self.turns.append(ConversationTurn("assistant", run=run, is_open=True))
        return new

    def mark_trimmed(self, run: Run) -> None:
        """Mark turns as no longer held if the run's prompt was trimmed."""
        prompt_turns, prompt_length = self.turns_in_context[:-1], len(run.request.prompt)
        rest = next(
            (rest for n in range(len(prompt_turns) + 1) if len(rest := _after(prompt_turns, n)) == prompt_length),
            prompt_turns,
        )
        for turn in prompt_turns:
            turn.is_in_context = turn in rest

    def finish_answer(self, run: Run) -> None:
        """Finish an answer with the run's text; an empty answer of a failed run is removed."""
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.run is not run:
            return
        turn.content, turn.is_open = run.sequences[run.shown_index].text, False
        if not run.tokens and run.outcome is not None and run.outcome.kind == "failed":
            self.turns.pop()

    def messages_before_answer(self) -> tuple[dict[str, str], ...]:
        """Return the messages that the last answer replied to."""
        return tuple(turn.message for turn in self.turns_in_context[:-1])

    def remove_last_user_turn(self) -> str:
        """Remove the user's last turn and everything after it, and return its text."""
        place = max(n for n, turn in enumerate(self.turns) if turn.role == "user")
        text = self.turns[place].content
        del self.turns[place:]
        return text

    def clear(self) -> None:
        """Start a new chat."""
        self.turns.clear()

    def _estimate_tokens(self, turns: Sequence[ConversationTurn]) -> int:
        """Estimate the number of tokens of these turns from the characters per token of this chat's answers."""
        answers = [turn for turn in self.turns if turn.written and turn.content]
        tokens, characters = sum(turn.written for turn in answers), sum(len(turn.content) for turn in answers)
        each = characters / tokens if tokens else DEFAULT_CHARACTERS_PER_TOKEN
        return sum(round(len(turn.content) / each) + TEMPLATE_TOKENS_PER_TURN for turn in turns)


def _after(turns: Sequence[ConversationTurn], count: int) -> list[ConversationTurn]:
    """Return the turns without the first `count`; system turns always stay."""
    return [*(turn for turn in turns[:count] if turn.role == "system"), *turns[count:]]


def _repeated_turns(turns: Sequence[ConversationTurn], messages: Sequence[Message]) -> list[ConversationTurn] | None:
    """Return the turns that `messages` repeat: all of them, or all but a last answer; None otherwise."""
    for candidate in (list(turns), list(turns[:-1])):
        if [turn.message for turn in candidate] == list(messages[: len(candidate)]):
            if len(candidate) == len(turns):
                return candidate
            if len(messages) == len(candidate) and turns[-1].role == "assistant":
                return candidate
    return None
