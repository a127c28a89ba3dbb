"""Replay steps of a finished run: the logits that entered the pipeline, and the strategy's choice from its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from decodescope.core.decoding.forward.forward_pass import ForwardOutput
from decodescope.core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.run_generator import make_generator
from decodescope.core.decoding.score_cache import StepLogits
from decodescope.core.decoding.step_stats import StepStats
from decodescope.core.events import Method


class RngReplay:
    """Replays a run's random numbers step by step; they depend on shapes alone, not on scores."""

    def __init__(self, run: DecodingRun, rows: int, row: int, generator: torch.Generator) -> None:
        """Replay `row` of the `rows` that were sampled together, from the state of `generator` before the run."""
        self._rows, self._row, self._device = rows, row, run.device
        self._generator = generator
        self._state = self._generator.get_state()
        self._uniform = torch.full((rows, run.model.vocabulary), 1 / run.model.vocabulary, device=self._device)
        self._random_stages = sum(stage.processor.uses_rng for stage in run.pipeline.stages)

    def next_step(self) -> StepRng:
        """Return the random numbers of the next step."""
        self._state = self._generator.get_state()
        for _ in range(self._random_stages):
            torch.rand(self._rows, generator=self._generator, device=self._device)
        torch.multinomial(self._uniform, 1, generator=self._generator)
        return self.same_step()

    def same_step(self) -> StepRng:
        """Return the random numbers of the last step again."""
        generator = torch.Generator(self._device)
        generator.set_state(self._state)
        return StepRng(generator, self._uniform, self._row)


class StepRng:
    """The random numbers of one step for one of its rows."""

    def __init__(self, generator: torch.Generator, uniform_rows: torch.Tensor, row: int) -> None:
        self._generator, self._uniform, self._row = generator, uniform_rows, row

    def uniform(self, rows: int) -> torch.Tensor:
        """Return a number in [0, 1) for this row, [1]."""
        numbers = torch.rand(len(self._uniform), generator=self._generator, device=self._uniform.device)
        return numbers[self._row : self._row + 1]

    def sample(self, scores: torch.Tensor) -> int:
        """Sample a token from softmax(scores [1, V])."""
        shares = self._uniform.clone()
        shares[self._row] = torch.softmax(scores, -1)[0]
        return int(torch.multinomial(shares, 1, generator=self._generator)[self._row])


class StepReplayer:
    """Replays strategies that take the best score or sample; other strategies override it (`Strategy.again`)."""

    needs_hidden_states = False
    """Whether the input of the pipeline depends on the hidden states of all layers."""

    def __init__(self, run: DecodingRun) -> None:
        """Replay for `run`, a run with the requested settings that decodes nothing itself."""
        self.run = run

    @property
    def method(self) -> Method:
        """The method that selects tokens."""
        return "sampled" if self.run.settings.get("do_sample") else "greedy"

    def check(self) -> None:
        """Raise StrategyError if the step cannot be replayed."""

    def replay_rng(self, rows: int, sequence: int) -> RngReplay | None:
        """Return the run's random numbers for sequence number `sequence` of `rows`; None without sampling or with
        drafts, which also use random numbers.
        """
        if not self.run.settings.get("do_sample") or self.run.strategy.speculates:
            return None
        return RngReplay(self.run, rows, sequence, make_generator(self.run.request, self.run.device))

    def has_same_input(self, other: StepReplayer) -> bool:
        """Return whether the pipeline's input is the same as for another replayer of this class."""
        return True

    def pipeline_input(self, output: ForwardOutput) -> StepLogits:
        """Return the pipeline's input after a pass."""
        return StepLogits(self.run.replace_invalid(output.last))

    def stage_headings(self, funnel: ProcessorPipeline) -> list[StageHeading]:
        """Return the headings of the stages between a step's scores."""
        return [stage.heading for stage in funnel.stages]

    def pick(self, scores: torch.Tensor, step_logits: StepLogits, rng: StepRng | None) -> int | None:
        """Return the token chosen from processed scores [1, V]; None if it cannot be determined."""
        if not self.run.settings.get("do_sample"):
            return int(scores[0].argmax())
        return rng.sample(scores) if rng is not None else None

    def add_strategy_stats(
        self, stats: StepStats, scores: Sequence[torch.Tensor], step_logits: StepLogits
    ) -> StepStats:
        """Add the strategy's own statistics; `scores` before the first stage and after each."""
        return stats


def is_stateful(funnel: ProcessorPipeline) -> bool:
    """Return whether a stage depends on earlier steps beyond their tokens."""
    return any(stage.processor.reorder_rows is not None for stage in funnel.stages)


def replay_inputs(replayer: StepReplayer, ids: Sequence[int], step: int, *, all_steps: bool) -> Iterator[StepLogits]:
    """Yield the pipeline's input at `step`, or with `all_steps` at every step up to it, from passes over the text;
    `ids`: the tokens after the run's start.
    """
    run = replayer.run
    if not all_steps and step:
        request = replace(run.request, beginning=(*run.inputs.beginning, *ids[:step]))
        run = DecodingRun(run.model, request, run.strategy, run.settings, run.cancel)
        step = 0
    output, _ = run.prefill(hidden=replayer.needs_hidden_states)
    for place in range(step + 1):
        yield replayer.pipeline_input(output)
        if place < step:
            output = run.forward(torch.tensor([[ids[place]]], device=run.device), hidden=replayer.needs_hidden_states)
