"""The thinking of a run's shown text, found again only where new tokens may contain a mark. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope import core
from decodescope.core.thinking import KNOWN_MARKS, NO_THINKING, AnswerThinking, find_thinking
from decodescope.resources.language import trn

if TYPE_CHECKING:
    from decodescope.core.events import RunStarted, SequenceFinished, TokenChosen

_OVERLAP = 24
"""Number of earlier tokens in which a mark may begin that new tokens complete."""


class ThinkingTracker:
    """Keeps the thinking of a text that grows token by token."""

    def __init__(self) -> None:
        self._started: RunStarted | None = None
        self._last: TokenChosen | None = None
        self._count = 0
        self._end: SequenceFinished | None = None
        self._found = NO_THINKING

    def update(
        self, started: RunStarted | None, tokens: Sequence[TokenChosen], end: SequenceFinished | None
    ) -> AnswerThinking:
        """Return the thinking of `tokens`; its texts are up to date only after the `end` of the sequence."""
        grows = (
            self._started is started
            and 0 < self._count <= len(tokens)
            and tokens[self._count - 1] is self._last
            and end is self._end
        )
        if grows and self._count == len(tokens):
            return self._found
        if not grows or self._may_contain_mark(started, tokens[max(0, self._count - _OVERLAP) :]):
            self._found = find_thinking(started, tokens, end.tail if end is not None else "")
        elif self._found.is_open:
            *closed, (start, _stop) = self._found.ranges
            self._found = self._found._replace(ranges=(*closed, (start, len(tokens))))
        self._started, self._count, self._end = started, len(tokens), end
        self._last = tokens[-1] if tokens else None
        return self._found

    @staticmethod
    def _may_contain_mark(started: RunStarted | None, tokens: Sequence[TokenChosen]) -> bool:
        text = "".join([token.piece if token.special else token.text for token in tokens])
        marks = (started.thinking if started is not None else ()) or KNOWN_MARKS
        return any(mark[0] in text or mark[1] in text for mark in marks)


def thinking_summary(thinking: AnswerThinking, tokens: int) -> str:
    """Return how much of an answer of `tokens` tokens is thinking: `34 of 56 tokens (61 %)`; for an answer whose tokens
    are not known, the number of words.
    """
    if not tokens:
        words = len(thinking.thinking.split())
        return trn("{n:,} word", "{n:,} words", words).format(n=words)
    return core.words.thinking_share(thinking.token_count, tokens)
