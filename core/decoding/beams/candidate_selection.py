"""Which continuations of all beams are looked at: the best ones, or drawn ones."""

from __future__ import annotations

import math
from typing import Protocol

import torch


class CandidateSelector(Protocol):
    """Takes `count` continuations from the scores [n · V] of all beams, as (scores, places), each [count]."""

    def __call__(self, flat: torch.Tensor, count: int, full: int) -> tuple[torch.Tensor, torch.Tensor]:
        """`full`: what n · V is when all beams are alive."""


def select_best(flat: torch.Tensor, count: int, full: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The highest scores, best first."""
    top = flat.topk(min(count, flat.shape[0]))
    return top.values, top.indices


class SamplingSelector:
    """Draws without replacement from softmax(scores), best first: which of them may end a text is for scores to say.

    So does `generate` since 5.24; the releases before it leave them in the order of drawing, by which others end.

    Every probability is divided by an exponential variate of its own and the largest quotients win, which is
    sampling without replacement (Efraimidis and Spirakis 2006) and what torch.multinomial does, draw for draw, but
    without its limit of 2^24 categories.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def __call__(self, flat: torch.Tensor, count: int, full: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and places of the drawn ones; where fewer are possible, the rest have a score of -inf."""
        if flat.shape[0] < full:
            flat = torch.nn.functional.pad(flat, (0, full - flat.shape[0]), value=-math.inf)
        probabilities = torch.softmax(flat, -1)
        race = torch.empty_like(probabilities).exponential_(generator=self._generator)
        places = (probabilities / race).topk(min(count, flat.shape[0])).indices
        drawn = flat[places].masked_fill(probabilities[places] == 0, -math.inf)
        scores, order = drawn.sort(descending=True, stable=True)
        return scores, places[order]
