"""A run that is over, thrown and judged again at one of its steps: the dice as they lay, the scores that came in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from core.decoding.contrastive import Trial, balance
from core.decoding.dola import LayerContrast
from core.decoding.forward.forward import Output
from core.decoding.funnel import Funnel
from core.decoding.kept import Entering
from core.decoding.run import DecodingRun
from core.events import Method


class Thrown:
    """The run's random numbers again, step by step: what a step throws depends on shapes alone, not on its scores."""

    def __init__(self, run: DecodingRun, rows: int, row: int, seed: int) -> None:
        """`rows` are thrown for at once, and `row` is the one to look at."""
        self._rows, self._row, self._device = rows, row, run.device
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._state = self._generator.get_state()
        self._even = torch.full((rows, run.model.vocabulary), 1 / run.model.vocabulary, device=self._device)
        self._stages = sum(stage.processor.throws for stage in run.funnel.stages)

    def step(self) -> Die:
        """The dice of the step that has come; the next call is for the next one."""
        self._state = self._generator.get_state()
        for _ in range(self._stages):
            torch.rand(self._rows, generator=self._generator, device=self._device)
        torch.multinomial(self._even, 1, generator=self._generator)
        return self.again()

    def again(self) -> Die:
        """The dice of the last step once more."""
        generator = torch.Generator(self._device)
        generator.set_state(self._state)
        return Die(generator, self._even, self._row)


class Die:
    """The random numbers of one step, for one of the rows that they were thrown for."""

    def __init__(self, generator: torch.Generator, even: torch.Tensor, row: int) -> None:
        self._generator, self._even, self._row = generator, even, row

    def throw(self, rows: int) -> torch.Tensor:
        """A number of [0, 1) for the one row, [1]."""
        thrown = torch.rand(len(self._even), generator=self._generator, device=self._even.device)
        return thrown[self._row : self._row + 1]

    def draw(self, scores: torch.Tensor) -> int:
        """A token of softmax(scores [1, V])."""
        shares = self._even.clone()
        shares[self._row] = torch.softmax(scores, -1)[0]
        return int(torch.multinomial(shares, 1, generator=self._generator)[self._row])


def remembers(funnel: Funnel) -> bool:
    """Whether what a stage does depends on the steps before, beyond their tokens."""
    return any(stage.processor.follow is not None for stage in funnel.stages)


def read_through(run: DecodingRun, ids: Sequence[int], step: int, *, whole: bool) -> Iterator[Entering]:
    """What came in at `step`, or with `whole` at every step up to it, from passes over the text; `ids`: the tokens
    behind the run's start."""
    contrast = LayerContrast(run.model, run.config.dola_layers) if run.config.dola_layers is not None else None
    if not whole and step:
        beginning = (*run.opening.beginning, *ids[:step])
        request = replace(run.request, beginning=beginning)
        run = DecodingRun(run.model, request, run.strategy, run.config, run.cancel)
        step = 0
    output, _ = run.prefill(hidden=contrast is not None)
    for place in range(step + 1):
        yield _entering(run, output, contrast)
        if place < step:
            token = torch.tensor([[ids[place]]], device=run.device)
            output = run.forward(token, hidden=contrast is not None)


def _entering(run: DecodingRun, output: Output, contrast: LayerContrast | None) -> Entering:
    raw = run.repair(output.last)
    if contrast is None or output.hidden is None:
        return Entering(raw)
    return Entering(raw, *contrast.apply(raw, output.hidden, raw))


def method_of(run: DecodingRun) -> Method:
    """How tokens are picked."""
    if run.config.penalty_alpha is not None:
        return "contrastive"
    if run.config.dola_layers is not None:
        return "dola_sampled" if run.config.do_sample else "dola"
    return "sampled" if run.config.do_sample else "greedy"


def tried(run: DecodingRun, scores: torch.Tensor, penalties: Mapping[int, float]) -> Trial | None:
    """Contrastive search's candidates of `scores` [1, V], without what they led to; None where one was never tried."""
    confidence, candidates = torch.softmax(scores[0], -1).topk(min(int(run.config.top_k), run.model.vocabulary))
    tokens = candidates.tolist()
    if any(token not in penalties for token in tokens):
        return None
    penalty = torch.tensor([penalties[token] for token in tokens], device=scores.device)
    score = balance(confidence, penalty, float(run.config.penalty_alpha or 0.0))
    return Trial(candidates, confidence, penalty, score, torch.empty(0), torch.empty(0))
