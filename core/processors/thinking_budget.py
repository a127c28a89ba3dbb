"""Thinking budget: ends the thinking by force after a number of tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import THINKING, Parameter
from decodescope.core.processors.base import Context, Processor, is_given
from decodescope.core.thinking.budget import ThinkingWalker, TokenizedMark, start_state
from decodescope.core.thinking.marks import ThinkingMark
from decodescope.core.thinking.recognition import is_open_after
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

MESSAGE = Parameter(
    "thinking_message", mark("Sentence at the end of thinking"), "text", "",
    mark("Written on a line of its own before thinking is ended by force; empty: only the model's mark."),
    option=True, advanced=True, group=THINKING,
)  # fmt: skip
MARKS = Parameter(
    "thinking_marks", mark("Marks of thinking"), "text", "",
    mark("Opening and closing mark, separated by a space, such as “<think> </think>”; empty: the model's own."),
    option=True, advanced=True, group=THINKING,
)  # fmt: skip


def token_marks(context: Context, setting: str) -> list[TokenizedMark]:
    """Return the marks of the model, or those of the settings. Raises ParameterError if there are none."""
    given = str(context.settings.get(MARKS.name) or "").split()
    if given and len(given) != 2:
        raise ParameterError(
            tr("The marks of thinking are not two words."),
            tr("Write the opening and the closing mark, separated by a space."),
            MARKS.name,
        )
    marks = [ThinkingMark(*given)] if given else [ThinkingMark(*one) for one in context.model.thinking_marks]
    if not marks:
        raise ParameterError(
            tr("The model has no thinking: neither its chat template nor its tokens have marks of it."),
            tr("Turn the setting off, choose a model that thinks, or name the marks (thinking_marks)."),
            setting,
        )
    return [TokenizedMark(one, tuple(encode_text(context, one.closing + one.header, setting))) for one in marks]


def encode_text(context: Context, text: str, setting: str) -> list[int]:
    """Return the tokens of a text inside other text. Raises ParameterError if the model has no tokenizer."""
    tokenizer = context.model.tokenizer
    if tokenizer is None:
        raise ParameterError(
            tr("The model has no tokenizer, so a text cannot be converted to tokens."),
            tr("Turn the setting off."),
            setting,
        )
    before = tokenizer.encode("\n", add_special_tokens=False)
    ids = tokenizer.encode(f"\n{text}", add_special_tokens=False)  # without the space that some put before a text
    is_joined = ids[: len(before)] != before
    return list(tokenizer.encode(text, add_special_tokens=False) if is_joined else ids[len(before) :])


def make_walker(context: Context, setting: str, limit: int | None, message: Sequence[int] = (),
                extension: Sequence[int] = ()) -> ThinkingWalker:  # fmt: skip
    """Return the walker of a run. Raises ParameterError where the setting cannot be used."""
    if context.settings.get("grammar") is not None:
        raise ParameterError(
            tr("The grammar holds from the first token of the answer on, where the thinking begins."),
            tr("Turn off the grammar or the setting of thinking."),
            setting,
        )
    marks, pieces = token_marks(context, setting), context.model.pieces
    texts = [pieces[token] for token in context.before]
    special = [token in pieces.special for token in context.before]
    start = start_state(marks, lambda one: is_open_after(texts, special, [one]))
    return ThinkingWalker(marks, pieces, limit, message, extension, start)


class ThinkingLimit:
    """Leaves only the token that must be written next, after the budget is used up."""

    def __init__(self, walker: ThinkingWalker, start: int) -> None:
        self._walker, self._start = walker, start

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] for the texts `ids` [B, T]; a forced token gets the score 0, as a certain one."""
        changed: torch.Tensor | None = None
        for row, text in enumerate(ids[:, self._start :].tolist()):
            state = self._walker.state(text)
            banned = self._end_to_ban(text) if not state.pending else None
            if not state.pending and banned is None:
                continue
            if changed is None:
                changed = scores.clone()
            if state.pending:
                changed[row] = -math.inf
                changed[row, state.pending[0]] = 0.0
            elif banned is not None:
                changed[row, banned] = -math.inf
        return scores if changed is None else changed

    def _end_to_ban(self, text: Sequence[int]) -> int | None:
        """Return the closing token that may not follow: models that were ended by force like to write it again."""
        if not self._walker.state(text).is_closed_by_force:
            return None
        single = [one.closing[0] for one in self._walker.marks if len(one.closing) == 1]
        return single[0] if single else None

    def forces(self, answer: Sequence[int], sequence: int) -> bool:
        """Return whether the token after an answer is written by force."""
        return bool(self._walker.state(answer).pending)


def make(value: int, context: Context) -> ThinkingLimit:
    """Create the stage of one run. Raises ParameterError."""
    message = str(context.settings.get(MESSAGE.name) or "")
    ids = encode_text(context, f"\n{message}\n", PROCESSOR.name) if message.strip() else ()
    return ThinkingLimit(make_walker(context, PROCESSOR.name, int(value), ids), context.start)


PROCESSOR = Processor(
    name="thinking_budget",
    make=make,
    order=500,
    label=mark("thinking {v}"),
    phrase=mark("the thinking budget of {v} tokens"),
    plain_phrase=mark("the limit on thinking"),
    kind="ban",
    parameter=Parameter(
        "thinking_budget", mark("Thinking budget"), "int", None,
        mark("Maximum number of tokens of thinking. After them the end of thinking is written by force."),
        minimum=0, maximum=1_000_000, soft_maximum=4096, step=1, option=True, advanced=True, group=THINKING,
    ),
    extra_parameters=(MESSAGE, MARKS),
    shown=96,
    is_on=is_given,
    end="last",
    forces=ThinkingLimit.forces,
)  # fmt: skip
