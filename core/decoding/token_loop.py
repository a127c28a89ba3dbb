"""One token at a time: the loop that greedy decoding, sampling and DoLa share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch

from core.decoding.fast_argmax import argmax
from core.decoding.growable_tensor import GrowableTensor, growable_ids
from core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from core.decoding.rng_replay import RngReplay
from core.decoding.run import DecodingRun
from core.decoding.sequences import SequenceState
from core.decoding.step_events import StepEventWriter
from core.decoding.step_replayer import StepReplayer
from core.events import Event, LayerChoice, Method


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
