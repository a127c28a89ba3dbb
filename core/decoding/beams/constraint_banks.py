"""Constrained beam search: extra candidates that meet the constraints, and banks that keep them alive.

Two variants of pool and banks:
- `paper` (Post and Vilar 2018, Fast Lexically Constrained Decoding with Dynamic Beam Allocation): the best
  continuations of all beams, every continuation that meets one more constraint token, and the best continuation of
  each beam; banks by the number of constraint tokens met. The end token is forbidden until everything is met, and
  beams that are about to run out of tokens are forced to continue a phrase.
- `transformers` (version 4): without the third kind; a met phrase counts as much as the longest one; hypotheses that
  end unmet are dropped. Where that search would end with no complete hypothesis, the best beam that can still be
  completed is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from decodescope.core.decoding.beams.beam_node import BeamNode
from decodescope.core.decoding.beams.constraints import ConstraintProgress, Constraints

RowToken = tuple[int, int]
"""(row, token)."""


def round_robin(nodes: Iterable[BeamNode], banks: Sequence[int]) -> list[BeamNode]:
    """Order nodes: the best of every bank, highest bank first, then the second best of each, and so on."""
    by_bank: dict[int, list[BeamNode]] = {}
    for node, bank in zip(nodes, banks, strict=True):
        by_bank.setdefault(bank, []).append(node)
    ranked = [
        (place, -bank, node)
        for bank, shelf in by_bank.items()
        for place, node in enumerate(sorted(shelf, key=lambda node: -node.score))
    ]
    return [node for _place, _bank, node in sorted(ranked, key=lambda item: item[:2])]


class ConstraintBanks:
    """Additions of constrained search to a beam search step."""

    def __init__(self, constraints: Constraints, pool: str, eos: Iterable[int], limit: int) -> None:
        self.constraints = constraints
        self.max_tokens = limit
        """Maximum number of tokens within which everything must be met."""
        self._paper = pool == "paper"
        self._eos = sorted(eos)
        self._phrase_weight = max((phrase.max_length for phrase in constraints.phrases), default=0)

    def mask(self, scores: torch.Tensor, beams: Sequence[BeamNode]) -> torch.Tensor:
        """Mask scores [n, V]: no end tokens for unmet beams, and only useful tokens for beams that are about to run out
        of room.
        """
        if not self._paper:
            return scores
        scores = scores.clone()
        for row, beam in enumerate(beams):
            progress = self._progress_of(beam)
            if progress.is_complete:
                continue
            if self._eos:
                scores[row, self._eos] = -math.inf
            left = self.max_tokens - beam.length - 1
            if self.constraints.min_remaining_if_broken(progress) > left:
                self._ban_others(scores[row], self._useful_tokens(progress, left))
        return scores

    def _useful_tokens(self, progress: ConstraintProgress, tokens_left: int) -> list[int]:
        """Return tokens after which `tokens_left` more are enough to meet everything."""
        step, remaining = self.constraints.advance, self.constraints.min_remaining
        return [token for token in self.constraints.tokens if remaining(step(progress, token)) <= tokens_left]

    @staticmethod
    def _ban_others(row: torch.Tensor, tokens: list[int]) -> None:
        allowed_scores = row[tokens]
        row.fill_(-math.inf)
        row[tokens] = allowed_scores

    def extra_continuations(
        self, scores: torch.Tensor, beams: Sequence[BeamNode], existing: set[RowToken]
    ) -> list[RowToken]:
        """Return continuations to add to the pool besides the `existing` ones, without duplicates."""
        places = [
            (row, token)
            for row, beam in enumerate(beams)
            for token in self.constraints.advancing_tokens(self._progress_of(beam))
        ]
        if self._paper or not any(self._can_finish(beam) and not self.is_met(beam) for beam in beams):
            places += list(enumerate(scores.argmax(-1).tolist()))
        return [place for place in dict.fromkeys(places) if place not in existing]

    def record_progress(self, node: BeamNode) -> None:
        """Record the node's constraint progress."""
        assert node.parent is not None
        node.progress = self.constraints.advance(self._progress_of(node.parent), node.token)

    def select(
        self, regular: list[BeamNode], extra: list[BeamNode], width: int, last: bool, rescue: bool
    ) -> tuple[list[BeamNode], list[BeamNode]]:  # fmt: skip
        """Return (nodes that continue, nodes that end) of a pool.

        With `last` no node can continue; `rescue` means that no hypothesis has ended yet.
        """
        if self._paper:
            return self._select_paper(regular + extra, width, last)
        return self._select_transformers(regular, extra, width, last, rescue)

    def _select_paper(self, pool: list[BeamNode], width: int, last: bool) -> tuple[list[BeamNode], list[BeamNode]]:
        order = self._round_robin(pool)
        ended = [node for node in order[:width] if (last or node.stop) and self.is_met(node)]
        continued = [node for node in order if not node.stop][:width]
        return continued, ended

    def _select_transformers(
        self, regular: list[BeamNode], extra: list[BeamNode], width: int, last: bool, rescue: bool
    ) -> tuple[list[BeamNode], list[BeamNode]]:  # fmt: skip
        ended = [node for node in regular[:width] + extra if node.stop and self.is_met(node)]
        going = [node for node in regular if not node.stop]
        added = [node for node in extra + going[width:] if not node.stop and self._advances(node)]
        continued = self._round_robin(going[:width] + added)[:width]
        if rescue and not ended and not any(map(self._can_finish, continued)):
            able = [node for node in regular + extra if not node.stop and self._can_finish(node)]
            continued = continued[: width - 1] + sorted(able, key=lambda node: -node.score)[:1]
        if last:
            ended += [node for node in continued if self.is_met(node)]
        return continued, ended

    def _can_finish(self, node: BeamNode) -> bool:
        """Return whether the node can still meet everything within the limit."""
        return self.constraints.min_remaining(self._progress_of(node)) <= self.max_tokens - node.length

    def _advances(self, node: BeamNode) -> bool:
        assert node.parent is not None
        return node.token in self.constraints.advancing_tokens(self._progress_of(node.parent))

    def _round_robin(self, nodes: list[BeamNode]) -> list[BeamNode]:
        return round_robin(nodes, [self._bank(self._progress_of(node)) for node in nodes])

    def _bank(self, progress: ConstraintProgress) -> int:
        if self._paper:
            return self.constraints.tokens_met(progress)
        if progress.current is None:
            return len(progress.met) * self._phrase_weight
        left = self.constraints.phrases[progress.current].max_length - len(progress.matched)
        return len(progress.met) * self._phrase_weight + self._phrase_weight - left

    def is_met(self, node: BeamNode) -> bool:
        """Return whether the node's text meets every constraint."""
        return self._progress_of(node).is_complete

    def tokens_met(self, node: BeamNode) -> int:
        """Return the number of constraint tokens met."""
        return self.constraints.tokens_met(self._progress_of(node))

    def _progress_of(self, node: BeamNode) -> ConstraintProgress:
        return node.progress or self.constraints.start
