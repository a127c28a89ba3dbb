"""The steps of a run that is over, judged again: what came into the funnel, and what a strategy takes of what left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from core.decoding.forward.forward_pass import ForwardOutput
from core.decoding.processor_pipeline import ProcessorPipeline, StageHeading
from core.decoding.run import DecodingRun
from core.decoding.score_cache import StepLogits
from core.decoding.step_stats import StepStats
from core.events import Method


class RngReplay:
    """The run's random numbers again, step by step: what a step throws depends on shapes alone, not on its scores."""

    def __init__(self, run: DecodingRun, rows: int, row: int, seed: int) -> None:
        """`rows` are thrown for at once, and `row` is the one to look at."""
        self._rows, self._row, self._device = rows, row, run.device
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._state = self._generator.get_state()
        self._uniform = torch.full((rows, run.model.vocabulary), 1 / run.model.vocabulary, device=self._device)
        self._random_stages = sum(stage.processor.uses_rng for stage in run.pipeline.stages)

    def next_step(self) -> StepRng:
        """The dice of the step that has come; the next call is for the next one."""
        self._state = self._generator.get_state()
        for _ in range(self._random_stages):
            torch.rand(self._rows, generator=self._generator, device=self._device)
        torch.multinomial(self._uniform, 1, generator=self._generator)
        return self.same_step()

    def same_step(self) -> StepRng:
        """The dice of the last step once more."""
        generator = torch.Generator(self._device)
        generator.set_state(self._state)
        return StepRng(generator, self._uniform, self._row)


class StepRng:
    """The random numbers of one step, for one of the rows that they were thrown for."""

    def __init__(self, generator: torch.Generator, uniform_rows: torch.Tensor, row: int) -> None:
        self._generator, self._uniform, self._row = generator, uniform_rows, row

    def uniform(self, rows: int) -> torch.Tensor:
        """A number of [0, 1) for the one row, [1]."""
        thrown = torch.rand(len(self._uniform), generator=self._generator, device=self._uniform.device)
        return thrown[self._row : self._row + 1]

    def sample(self, scores: torch.Tensor) -> int:
        """A token of softmax(scores [1, V])."""
        shares = self._uniform.clone()
        shares[self._row] = torch.softmax(scores, -1)[0]
        return int(torch.multinomial(shares, 1, generator=self._generator)[self._row])


class StepReplayer:
    """A strategy that takes the best score, or the token that the dice fall on; others say what they do instead
    (`Strategy.again`)."""

    needs_hidden_states = False
    """The hidden states of all layers are needed for what comes into the funnel."""

    def __init__(self, run: DecodingRun) -> None:
        """`run`: one of the settings that are asked for, which decodes nothing."""
        self.run = run

    @property
    def method(self) -> Method:
        """How tokens are picked."""
        return "sampled" if self.run.config.do_sample else "greedy"

    def check(self) -> None:
        """Raises StrategyError for what cannot be judged again."""

    def replay_rng(self, rows: int, sequence: int) -> RngReplay | None:
        """The run's dice for the `sequence`-th of `rows` texts; None where it throws none, or drafts throw them too."""
        if not self.run.config.do_sample or self.run.strategy.speculates:
            return None
        return RngReplay(self.run, rows, sequence, self.run.request.seed)

    def has_same_input(self, other: StepReplayer) -> bool:
        """Whether under these settings the same comes into the funnel as under another's of its kind."""
        return True

    def pipeline_input(self, output: ForwardOutput) -> StepLogits:
        """What comes into the funnel behind a pass."""
        return StepLogits(self.run.replace_invalid(output.last))

    def stage_headings(self, funnel: ProcessorPipeline) -> list[StageHeading]:
        """Of what leads from one of a step's scores to the next."""
        return [stage.heading for stage in funnel.stages]

    def pick(self, scores: torch.Tensor, entering: StepLogits, rng: StepRng | None) -> int | None:
        """The token of scores [1, V] that left the funnel; None where nobody can tell."""
        if not self.run.config.do_sample:
            return int(scores[0].argmax())
        return rng.sample(scores) if rng is not None else None

    def add_strategy_stats(self, stats: StepStats, scores: Sequence[torch.Tensor], entering: StepLogits) -> StepStats:
        """The step's figures with what is the strategy's own; `scores` before the first stage and after each."""
        return stats


def is_stateful(funnel: ProcessorPipeline) -> bool:
    """Whether what a stage does depends on the steps before, beyond their tokens."""
    return any(stage.processor.follow is not None for stage in funnel.stages)


def replay_inputs(replayer: StepReplayer, ids: Sequence[int], step: int, *, all_steps: bool) -> Iterator[StepLogits]:
    """What came in at `step`, or with `all_steps` at every step up to it, from passes over the text; `ids`: the tokens
    behind the run's start."""
    run = replayer.run
    if not all_steps and step:
        request = replace(run.request, beginning=(*run.inputs.beginning, *ids[:step]))
        run = DecodingRun(run.model, request, run.strategy, run.config, run.cancel)
        step = 0
    output, _ = run.prefill(hidden=replayer.needs_hidden_states)
    for place in range(step + 1):
        yield replayer.pipeline_input(output)
        if place < step:
            output = run.forward(torch.tensor([[ids[place]]], device=run.device), hidden=replayer.needs_hidden_states)
