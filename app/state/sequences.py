"""The texts that a run writes side by side. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence as Ordered
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from app.state.beam_tree import BeamTree
    from core.events import Ending, SequenceFinished, TokenChosen

SequenceStatus = Literal["running", "finished", "cut", "stopped"]
"""`cut` by a limit."""
LIMITS: frozenset[Ending | None] = frozenset({"length", "context", "time"})
"""Endings that the text itself had no part in."""


@plain()
class RunSequence:
    """One of the texts a run writes side by side."""

    index: int
    tokens: list[TokenChosen] = field(default_factory=list)
    finished: SequenceFinished | None = None
    before: str = ""
    """The text that it begins with and did not write: of a branch, what stands before it."""

    @property
    def text(self) -> str:
        """Everything it has written, behind what it begins with."""
        return self.text_until(len(self.tokens))

    def text_until(self, count: int) -> str:
        """What its first `count` tokens wrote, behind what it begins with; the tail of an incomplete character comes
        with the last one."""
        text = self.before + "".join([token.text for token in self.tokens[:count]])
        if self.finished is not None and count >= len(self.tokens):
            text += self.finished.tail
        return text


def get_sequence(sequences: list[RunSequence], index: int) -> RunSequence:
    """The text of that number; those that are not there yet are begun."""
    while len(sequences) <= index:
        sequences.append(RunSequence(len(sequences)))
    return sequences[index]


def update_from_beams(beams: BeamTree, step: int, sequences: Ordered[RunSequence]) -> None:
    """Let `sequences` hold the hypotheses of a beam search behind that many steps, the leader first."""
    leader, rows = beams.leader(step), beams.hypotheses(step)
    nodes = [leader, *(row.node for row in rows if row.node != leader)]
    for number, sequence in enumerate(sequences):
        sequence.tokens = beams.tokens(nodes[number], number) if number < len(nodes) else []
