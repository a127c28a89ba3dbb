"""Prompt lookup (Saxena 2023): what followed the last time the text said the same few words."""

from __future__ import annotations

from collections.abc import Sequence

from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import Branch

_MATCH_CONFIDENCES = (0.25, 0.45, 0.65, 0.85)
"""First guesses of how often a match of so many tokens goes on as before; `auto` corrects them as it learns."""


class PromptLookupDrafter:
    """Finds the longest n-gram at the end of the text earlier in it (or in an encoder's source) and proposes what came
    next; the latest place wins among equally long ones."""

    name = "lookup"
    parameter_count = 0
    first_token_seconds = 0.0

    def __init__(self, source: list[int], max_ngram: int, max_length: int, number: int = 0) -> None:
        self._max_ngram = max_ngram
        self._max_length = max_length
        self._number = number
        self._next_positions: dict[tuple[int, ...], int] = {}
        self._length = 0
        self._tokens: list[int] = []
        self._index(source)

    def max_length(self, length: int) -> int:
        """It has no limit but its own."""
        return self._max_length

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """A chain, a point mass each; empty without a match."""
        new = text.ids[self._length :]
        self._length = len(text.ids)
        self._index(new)
        begin, size = self._find()
        if begin is None:
            return Branch()
        confidence = _MATCH_CONFIDENCES[min(size, len(_MATCH_CONFIDENCES)) - 1]
        ids = self._copy(begin, plan, confidence)
        branch = Branch.chain(ids, [1.0] * len(ids), [None] * len(ids) if plan.keeps_q else ())
        branch.confidences = [confidence] * len(ids)
        return branch

    def _copy(self, begin: int, plan: RoundPlan, confidence: float) -> list[int]:
        """What stands there, as long as it is worth checking; past the end of the text it goes on with what it has
        copied already, which is a loop."""
        ids: list[int] = []
        chance = 1.0
        for place in range(begin, begin + plan.depth):
            if plan.gate is not None:
                chance *= plan.gate.acceptance(self._number, confidence)
                if not plan.gate.is_worthwhile(chance, len(ids)):
                    break
            ids.append(self._tokens[place] if place < len(self._tokens) else ids[place - len(self._tokens)])
        return ids

    def _index(self, new: Sequence[int]) -> None:
        """Remember where every n-gram that `new` completes is followed by something (so: not the last ones)."""
        for token in new:
            end = len(self._tokens)  # the token about to be added follows what ends here
            for size in range(1, min(self._max_ngram, end) + 1):
                self._next_positions[tuple(self._tokens[end - size : end])] = end
            self._tokens.append(token)

    def _find(self) -> tuple[int | None, int]:
        """Where the longest match goes on, and its length."""
        found, matched = None, 0
        for size in range(1, min(self._max_ngram, len(self._tokens)) + 1):
            if (place := self._next_positions.get(tuple(self._tokens[-size:]))) is None:
                break  # what the text has never said before, it has not said with more before it either
            found, matched = place, size
        return found, matched

    def commit(self, accepted: Sequence[int]) -> None:
        """Nothing to keep."""

    def finish(self, length: int) -> None:
        """Nothing to forget."""
