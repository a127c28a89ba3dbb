"""The dice of a run that is over, as they lay."""

from __future__ import annotations

import torch

from core.decoding.run import DecodingRun


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
