"""Cache of the logits that entered the processor pipeline in a run's last steps, for replaying steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch

from decodescope.core.checks.arguments import check_bytes, check_kind
from decodescope.core.events import LayerChoice
from decodescope.resources.language import tr

BUDGET = 64 * 2**20
"""Maximum size in bytes: 4,096 steps with a vocabulary of 4,096, 105 with 152,000."""


class StepLogits(NamedTuple):
    """Logits that entered the pipeline at one step, [B, V]: the model's, and those of DoLa's contrast."""

    raw: torch.Tensor
    contrasted: torch.Tensor | None = None
    choice: LayerChoice | None = None
    penalties: Mapping[int, float] = MappingProxyType({})
    """Degeneration penalty by candidate, for contrastive search."""

    def for_sequence(self, row: int) -> StepLogits:
        """Return the logits of one sequence, [1, V]."""
        contrasted = self.contrasted[row : row + 1] if self.contrasted is not None else None
        return StepLogits(self.raw[row : row + 1], contrasted, self.choice, self.penalties)

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.raw.nbytes + (self.contrasted.nbytes if self.contrasted is not None else 0)


class ScoreCache:
    """Logits of the last run; the oldest steps are dropped beyond the budget. Nothing is computed or copied during the
    run.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        """Create a cache of at most `budget` bytes. Raises ParameterError for an invalid number of bytes."""
        check_bytes("budget", budget)
        self._budget = budget
        self._start: list[int] = []
        self._steps: dict[int, tuple[StepLogits, Sequence[int]]] = {}
        self._bytes = 0

    def start_run(self, start: Sequence[int]) -> None:
        """Start a run after these tokens; discard the previous run's logits."""
        self._start, self._bytes = list(start), 0
        self._steps.clear()

    def add(self, step: int, step_logits: StepLogits, chosen: Sequence[int]) -> None:
        """Add one step and the tokens chosen in it, one per row."""
        self._steps[step] = step_logits, chosen
        self._bytes += step_logits.bytes
        while self._bytes > self._budget:
            oldest = next(iter(self._steps))
            self._bytes -= self._steps.pop(oldest)[0].bytes

    def get(self, start: Sequence[int], ids: Sequence[int], step: int, sequence: int) -> StepLogits | None:
        """Return the logits after `start` and the first `step` of `ids`, [1, V]; None if they are not cached."""
        if step not in self._steps or list(start) != self._start:
            return None
        before = (self._steps[place] for place in range(step) if place in self._steps)
        written = [chosen[sequence] if sequence < len(chosen) else -1 for _, chosen in before]
        entering, _ = self._steps[step]
        if written != list(ids[step - len(written) : step]) or sequence >= len(entering.raw):
            return None
        return entering.for_sequence(sequence)


def detach_storage(row: torch.Tensor) -> torch.Tensor:
    """Copy scores [1, V] that share a larger storage, which would otherwise stay in memory."""
    return row.clone() if row.untyped_storage().nbytes() > row.nbytes else row


def check_score_cache(value: object) -> None:
    """Check a score cache. Raises ParameterError for another type; None is allowed."""
    if value is not None:
        check_kind("scores", value, ScoreCache, tr("Pass a decodescope.ScoreCache, or None."))
