"""The sequences that a run writes in parallel. No Qt in here."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.core.events import Ending, SequenceFinished, TokenChosen

SequenceStatus = Literal["running", "finished", "cut", "stopped"]
"""`cut` means ended by a limit."""
LIMITS: frozenset[Ending | None] = frozenset({"length", "context", "time"})
"""Ending reasons that are limits, not part of the text."""


@plain()
class RunSequence:
    """One of the sequences of a run."""

    index: int
    tokens: list[TokenChosen] = field(default_factory=list)
    finished: SequenceFinished | None = None
    before: str = ""
    """Text it begins with but did not write: in a branch, the text before the branch point."""

    @property
    def text(self) -> str:
        """The full text, including its beginning."""
        return self.text_until(len(self.tokens))

    def text_until(self, count: int) -> str:
        """Return the text of its first `count` tokens, including its beginning; the tail of an incomplete character is
        added with the last one.
        """
        text = self.before + "".join([token.text for token in self.tokens[:count]])
        if self.finished is not None and count >= len(self.tokens):
            text += self.finished.tail
        return text


def get_sequence(sequences: list[RunSequence], index: int) -> RunSequence:
    """Return the sequence with the given number, creating missing ones."""
    while len(sequences) <= index:
        sequences.append(RunSequence(len(sequences)))
    return sequences[index]
