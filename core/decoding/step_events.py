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
from core.decoding.run_counters import is_cache_measured
from core.decoding.score_cache import StepLogits
from core.decoding.sequences import AppendedToken, SequenceState
from core.decoding.stage_observers import add_stage_details
from core.decoding.step_stats import compute_steps_stats
from core.events import Event, LayerChoice, Method

if TYPE_CHECKING:
    import torch

    from core.processors.base import StageObserver

_BATCH_STEPS = 2
"""More would let a text grow on after the user stopped it."""
_MAX_WAIT_SECONDS = 0.008
"""Seconds of a step that may wait for the next one."""


class _PendingStep(NamedTuple):
    """A step that was written and has still to be shown."""

    number: int
    scores: list[torch.Tensor]
    """Raw and after every stage, each [B, V]."""
    chosen: torch.Tensor
    choice: LayerChoice | None
    appended: list[tuple[int, SequenceState, AppendedToken]]
    """Row, sequence and what was noted, for the sequences that were still being written."""
    observers: list[StageObserver | None]
    """Of its last stages."""


class StepEventWriter:
    """Appends tokens to their sequences and turns them into events."""

    def __init__(
        self, run: DecodingRun, sequences: Sequence[SequenceState], headings: Sequence[StageHeading], method: Method,
        observers: Callable[[], list[StageObserver | None]] | None = None,
    ) -> None:  # fmt: skip
        """`headings`: headings of the stages whose scores will come; `observers`: gives those of the step before each
        `write`, the run's funnel's where nothing is said."""
        self._run, self._sequences, self._headings, self._method = run, sequences, headings, method
        self._observers = observers or run.pipeline.observers
        self._pending: list[_PendingStep] = []
        self._batch_started = time.perf_counter()

    def write(
        self, number: int, scores: list[torch.Tensor], chosen: torch.Tensor, choice: LayerChoice | None
    ) -> Iterator[Event]:
        """One step: tokens [B], and the scores that decided them. Stops are known when this returns."""
        tokens = chosen.tolist()
        notes = [
            (row, track, self._run.writer.append_token(track, token))
            for row, (track, token) in enumerate(zip(self._sequences, tokens, strict=True))
            if track.stop is None
        ]
        witnesses = self._observers() if self._run.request.top_n else []
        if self._run.score_cache is not None:
            contrasted = scores[1] if choice is not None else None
            self._run.score_cache.add(number, StepLogits(scores[0], contrasted, choice), tokens)
        self._pending.append(_PendingStep(number, scores, chosen, choice, notes, witnesses))
        if self._is_due(number):
            yield from self.flush()
            self._batch_started = time.perf_counter()

    def _is_due(self, number: int) -> bool:
        """The first step, the second of a pair, a slow one, one that ends a text or precedes a measurement."""
        step, run = self._pending[-1], self._run
        return (
            len(self._pending) == _BATCH_STEPS
            or is_cache_measured(number)
            or time.perf_counter() - self._batch_started > _MAX_WAIT_SECONDS
            or any(track.stop for _, track, _ in step.appended)
            or run.is_cancelled()
        )

    def flush(self) -> Iterator[Event]:
        """Events of all steps that wait."""
        waiting, self._pending = self._pending, []
        if not waiting:
            return
        run, begun = self._run, time.perf_counter()
        scores, chosen = [step.scores for step in waiting], [step.chosen for step in waiting]
        readings = compute_steps_stats(scores, chosen, run.request.top_n, self._headings, run.model.pieces)
        share = (time.perf_counter() - begun) / len(waiting)
        for place, step in enumerate(waiting):
            for row, track, note in step.appended:
                reading = add_stage_details(
                    readings[place * len(self._sequences) + row], step.scores, row, step.observers
                )
                yield from run.writer.emit_token(track, note, reading, self._method, step.choice, seconds=share)
            yield from run.finish_step(step.number)
