"""Chosen tokens become events: what a step looked like is read two quick steps at a time.

Reading a step takes some twenty small operations. On a small model they cost as much as a layer, and nearly the same
for two steps as for one; a pair of quick steps is also shown within one frame of the screen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from core.decoding.processor_pipeline import StageHeading
from core.decoding.run import DecodingRun
from core.decoding.run_counters import is_measured
from core.decoding.score_cache import StepLogits
from core.decoding.sequences import AppendedToken, SequenceState
from core.decoding.stage_observers import with_details
from core.decoding.step_stats import read_steps
from core.events import Event, LayerChoice, Method

if TYPE_CHECKING:
    import torch

    from core.processors.base import Witness

_PAIR = 2
"""More would let a text grow on after the user stopped it."""
_QUICK = 0.008
"""Seconds of a step that may wait for the next one."""


class _PendingStep(NamedTuple):
    """A step that was written and has still to be shown."""

    number: int
    scores: list[torch.Tensor]
    """Raw and after every stage, each [B, V]."""
    chosen: torch.Tensor
    choice: LayerChoice | None
    notes: list[tuple[int, SequenceState, AppendedToken]]
    """Row, sequence and what was noted, for the sequences that were still being written."""
    witnesses: list[Witness | None]
    """Of its last stages."""


class StepEventWriter:
    """Appends tokens to their sequences and turns them into events."""

    def __init__(
        self, run: DecodingRun, tracks: Sequence[SequenceState], names: Sequence[StageHeading], method: Method,
        witnesses: Callable[[], list[Witness | None]] | None = None,
    ) -> None:  # fmt: skip
        """`names`: headings of the stages whose scores will come; `witnesses`: gives those of the step before each
        `write`, the run's funnel's where nothing is said."""
        self._run, self._tracks, self._names, self._method = run, tracks, names, method
        self._witnesses = witnesses or run.funnel.witnesses
        self._waiting: list[_PendingStep] = []
        self._begun = time.perf_counter()

    def write(
        self, number: int, scores: list[torch.Tensor], chosen: torch.Tensor, choice: LayerChoice | None
    ) -> Iterator[Event]:
        """One step: tokens [B], and the scores that decided them. Stops are known when this returns."""
        tokens = chosen.tolist()
        notes = [
            (row, track, self._run.scribe.note(track, token))
            for row, (track, token) in enumerate(zip(self._tracks, tokens, strict=True))
            if track.stop is None
        ]
        witnesses = self._witnesses() if self._run.request.top_n else []
        if self._run.kept is not None:
            contrasted = scores[1] if choice is not None else None
            self._run.kept.add(number, StepLogits(scores[0], contrasted, choice), tokens)
        self._waiting.append(_PendingStep(number, scores, chosen, choice, notes, witnesses))
        if self._is_due(number):
            yield from self.flush()
            self._begun = time.perf_counter()

    def _is_due(self, number: int) -> bool:
        """The first step, the second of a pair, a slow one, one that ends a text or precedes a measurement."""
        step, run = self._waiting[-1], self._run
        return (
            len(self._waiting) == _PAIR
            or is_measured(number)
            or time.perf_counter() - self._begun > _QUICK
            or any(track.stop for _, track, _ in step.notes)
            or run.is_cancelled()
        )

    def flush(self) -> Iterator[Event]:
        """Events of all steps that wait."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        run, begun = self._run, time.perf_counter()
        scores, chosen = [step.scores for step in waiting], [step.chosen for step in waiting]
        readings = read_steps(scores, chosen, run.request.top_n, self._names, run.model.pieces)
        share = (time.perf_counter() - begun) / len(waiting)
        for place, step in enumerate(waiting):
            for row, track, note in step.notes:
                reading = with_details(readings[place * len(self._tracks) + row], step.scores, row, step.witnesses)
                yield from run.scribe.tell(track, note, reading, self._method, step.choice, seconds=share)
            yield from run.step_done(step.number)
