"""Prompt lookup (Saxena 2023): what followed the same words earlier in the text is drafted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.decoding.speculation.drafters.base import DrafterKind, SpeculationText
from decodescope.core.decoding.speculation.round_plan import DEFAULT_LENGTH, RoundPlan
from decodescope.core.decoding.speculation.tree import Branch

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun

_MATCH_CONFIDENCES = (0.25, 0.45, 0.65, 0.85)
"""Prior acceptance by match length; `auto` corrects it as it learns."""


class PromptLookupDrafter:
    """Finds the longest n-gram at the end of the text earlier in it (or in an encoder's source) and proposes the tokens
    after it; among equal lengths the latest match wins.
    """

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
        """Return the maximum draft length."""
        return self._max_length

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Propose a chain of point masses; empty without a match."""
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
        """Copy tokens from `begin` on while they are worth verifying; past the end of the text, repeat the copied
        ones.
        """
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
        """Index every n-gram completed by `new` with the position after it (so not the last ones)."""
        for token in new:
            end = len(self._tokens)  # the token about to be added follows the n-gram that ends here
            for size in range(1, min(self._max_ngram, end) + 1):
                self._next_positions[tuple(self._tokens[end - size : end])] = end
            self._tokens.append(token)

    def _find(self) -> tuple[int | None, int]:
        """Return the position after the longest match, and its length."""
        found, matched = None, 0
        for size in range(1, min(self._max_ngram, len(self._tokens)) + 1):
            if (place := self._next_positions.get(tuple(self._tokens[-size:]))) is None:
                break  # no longer n-gram can match if this one does not
            found, matched = place, size
        return found, matched

    def commit(self, accepted: Sequence[int]) -> None:
        """Do nothing: no cache to keep."""

    def finish(self, length: int) -> None:
        """Do nothing: no cache to drop."""


def build_prompt_lookup_drafter(run: DecodingRun, number: int) -> PromptLookupDrafter:
    """Build the drafter from the run's settings; an encoder's source counts as earlier text."""
    source = run.inputs.source if run.model.is_encoder_decoder else []
    max_length = int(run.settings.get("prompt_lookup_num_tokens") or DEFAULT_LENGTH * 2)
    return PromptLookupDrafter(source, int(run.settings.get("max_matching_ngram_size") or 3), max_length, number)


DRAFTER = DrafterKind("prompt_lookup", build_prompt_lookup_drafter, combines=True, order=20)
