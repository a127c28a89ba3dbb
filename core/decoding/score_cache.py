"""The scores that came into the funnel of a run's last steps, held for whoever asks what else could have become of
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch

from core.checks.arguments import check_bytes, check_kind
from core.events import LayerChoice
from resources.language import tr

BUDGET = 64 * 2**20
"""Bytes that are held at most: 4,096 steps of a vocabulary of 4,096, 105 of one of 152,000."""


class StepLogits(NamedTuple):
    """What came into the funnel at one step, [B, V]: the model's logits, and those of DoLa's contrast."""

    raw: torch.Tensor
    contrasted: torch.Tensor | None = None
    choice: LayerChoice | None = None
    penalties: Mapping[int, float] = MappingProxyType({})
    """Contrastive search: degeneration penalty by candidate."""

    def for_sequence(self, row: int) -> StepLogits:
        """That of one sequence, [1, V]."""
        contrasted = self.contrasted[row : row + 1] if self.contrasted is not None else None
        return StepLogits(self.raw[row : row + 1], contrasted, self.choice, self.penalties)

    @property
    def bytes(self) -> int:
        """What it holds."""
        return self.raw.nbytes + (self.contrasted.nbytes if self.contrasted is not None else 0)


class KeptScores:
    """Those of the last run, the newest steps first where the budget does not hold all. Nothing is computed or copied
    for it while the run goes on."""

    def __init__(self, budget: int = BUDGET) -> None:
        """Raises ParameterError for what is no count of bytes."""
        check_bytes("budget", budget)
        self._budget = budget
        self._start: list[int] = []
        self._steps: dict[int, tuple[StepLogits, Sequence[int]]] = {}
        self._bytes = 0

    def start_run(self, start: Sequence[int]) -> None:
        """A run begins behind these tokens; what there was of another is let go."""
        self._start, self._bytes = list(start), 0
        self._steps.clear()

    def add(self, step: int, entering: StepLogits, chosen: Sequence[int]) -> None:
        """One step, and the tokens that were chosen in it, one a row."""
        self._steps[step] = entering, chosen
        self._bytes += entering.bytes
        while self._bytes > self._budget:
            oldest = next(iter(self._steps))
            self._bytes -= self._steps.pop(oldest)[0].bytes

    def get(self, start: Sequence[int], ids: Sequence[int], step: int, sequence: int) -> StepLogits | None:
        """What came in behind `start` and the first `step` of `ids`, [1, V]; None where that is not known any more."""
        if step not in self._steps or list(start) != self._start:
            return None
        before = (self._steps[place] for place in range(step) if place in self._steps)
        written = [chosen[sequence] if sequence < len(chosen) else -1 for _, chosen in before]
        entering, _ = self._steps[step]
        if written != list(ids[step - len(written) : step]) or sequence >= len(entering.raw):
            return None
        return entering.for_sequence(sequence)


def detach_storage(row: torch.Tensor) -> torch.Tensor:
    """The scores [1, V] without what else lies in the same piece of memory, which would be held with them."""
    return row.clone() if row.untyped_storage().nbytes() > row.nbytes else row


def check_score_cache(value: object) -> None:
    """Raises ParameterError for what holds no scores; None is nothing to hold them in."""
    if value is not None:
        check_kind("scores", value, KeptScores, tr("Give a core.KeptScores, or None."))
