"""One token at a time: the loop that greedy decoding, sampling and DoLa share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from core.decoding.run import DecodingRun
from core.decoding.score_cache import StepLogits
from core.decoding.sequences import AppendedToken, SequenceState, is_cache_measured
from core.decoding.step_replayer import RngReplay, StepReplayer
from core.decoding.step_stats import add_stage_details, compute_steps_stats
from core.decoding.tensor_utils import GrowableTensor, argmax, growable_ids
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


class TokenPicker(Protocol):
    """How the next token is taken from processed scores."""

    method: Method

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Token ids [B] from scores [B, V]."""


class GreedyPicker:
    """The best score."""

    method: Method = "greedy"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """argmax; the lowest id among equals."""
        return argmax(scores)


class MultinomialPicker:
    """A draw from the distribution."""

    method: Method = "sampled"

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One draw from softmax(scores) for each row."""
        return torch.multinomial(torch.softmax(scores, -1), 1, generator=generator).squeeze(1)


class SeededMultinomialPicker:
    """A draw for each text with a generator of its own: text n draws what a run of its own with `seed + n` draws.

    The draws are those of that run exactly, given the same distribution; a batch may compute the distribution with
    other last bits than one row does.
    """

    method: Method = "sampled"

    def __init__(self, seed: int, rows: int, device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed + row) for row in range(rows)]

    def pick(self, scores: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One draw from softmax(scores) for each row, by the row's own generator."""
        shares = torch.softmax(scores, -1)
        drawn = [torch.multinomial(row, 1, generator=own) for row, own in zip(shares, self._generators, strict=True)]
        return drawn[0] if len(drawn) == 1 else torch.cat(drawn)

    def uniform(self, rows: int) -> torch.Tensor:
        """A number of [0, 1) for each row, by the row's own generator."""
        thrown = [torch.rand(1, generator=own, device=own.device) for own in self._generators[:rows]]
        return thrown[0] if rows == 1 else torch.cat(thrown)


class SeededReplay(StepReplayer):
    """A step of a text with a seed of its own, judged again."""

    def replay_rng(self, rows: int, sequence: int) -> RngReplay:
        """Those of a run of its own."""
        return RngReplay(self.run, 1, 0, self.run.request.seed + sequence)


class ContrastMethod(Protocol):
    """Something that reads the layers before the funnel does (DoLa)."""

    heading: StageHeading

    def apply(
        self, logits: torch.Tensor, hidden: tuple[torch.Tensor, ...], allowed: torch.Tensor
    ) -> tuple[torch.Tensor, LayerChoice]:
        """Contrasted scores [B, V] of what is `allowed` (the logits, or −∞), and what was chosen."""


class ContrastPipeline:
    """A funnel with the contrast of layers in it: behind the stages that decide what there is to choose from at all."""

    def __init__(self, funnel: ProcessorPipeline, contrast: ContrastMethod) -> None:
        self._contrast = contrast
        self._stages_before = ProcessorPipeline([stage for stage in funnel.stages if stage.processor.before_contrast])
        self._stages_after = ProcessorPipeline(
            [stage for stage in funnel.stages if not stage.processor.before_contrast]
        )
        self.headings = [*self._stages_before.headings, contrast.heading, *self._stages_after.headings]

    def trace(
        self, ids: torch.Tensor, raw: torch.Tensor, hidden: tuple[torch.Tensor, ...]
    ) -> tuple[list[torch.Tensor], LayerChoice]:
        """The scores before the first stage and after each, all [B, V], and the layer that was chosen."""
        first = self._stages_before.trace(ids, raw)
        contrasted, choice = self._contrast.apply(raw, hidden, first[-1])
        return [*first, *self._stages_after.trace(ids, contrasted)], choice


def decode_single(run: DecodingRun, picker: TokenPicker, contrast: ContrastMethod | None = None) -> Iterator[Event]:
    """Pick a token for every sequence, step by step, until all have ended."""
    rows = run.sequences
    tracks = [run.writer.new_sequence(number) for number in range(rows)]
    ids = growable_ids(run.start_ids, rows, run.device)
    funnel = ContrastPipeline(run.pipeline, contrast) if contrast else run.pipeline
    writer = StepEventWriter(run, tracks, funnel.headings, picker.method)
    try:
        yield from _decode_steps(run, tracks, ids, picker, funnel, writer)
    except Exception:
        yield from writer.flush()  # the text so far is shown, whatever went wrong
        raise
    yield from run.finish(tracks)


def _decode_steps(
    run: DecodingRun,
    tracks: list[SequenceState],
    ids: GrowableTensor,
    picker: TokenPicker,
    funnel: ProcessorPipeline | ContrastPipeline,
    writer: StepEventWriter,
) -> Iterator[Event]:
    contrasts = isinstance(funnel, ContrastPipeline)
    output, prefilled = run.prefill(len(tracks), hidden=contrasts)
    yield prefilled
    step = 0
    while True:
        raw, choice = run.replace_invalid(output.last), None
        if isinstance(funnel, ContrastPipeline):
            assert output.hidden is not None
            scores, choice = funnel.trace(ids.tensor, raw, output.hidden)
        else:
            scores = funnel.trace(ids.tensor, raw)
        run.check_scores(scores[-1], raw, step, scores)
        chosen = picker.pick(scores[-1], run.generator)
        yield from writer.write(step, scores, chosen, choice)
        column = chosen[:, None]
        ids.append(column)
        step += 1
        if all(track.stop for track in tracks) or run.is_cancelled():
            break
        output = run.forward(column, hidden=contrasts)
    yield from writer.flush()
