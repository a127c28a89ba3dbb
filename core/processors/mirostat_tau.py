"""Mirostat 2: the cut moves from step to step, so that the text surprises by as much as was asked for."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from core.processors.score_stats import cut_below, last_token_scores, max_and_logsumexp
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.events import StageDetail
    from core.processors.base import StageObserver

ETA = Parameter(
    "mirostat_eta", mark("Mirostat's learning rate"), "float", 0.1,
    mark("How far the cut moves when a token surprised more or less than was asked for."),
    minimum=0.0, maximum=10.0, soft_maximum=1.0, step=0.01, exclusive=True, option=True, advanced=True,
)  # fmt: skip


_BIT = math.log(2)
"""In nats."""


class Mirostat:
    """μ of every text, and the surprise of every token at the step before (Basu et al. 2021, Algorithm 2).

    μ begins at 2τ. Kept are tokens with −log₂ p ≤ μ, at least the likeliest; behind the draw μ −= η · (−log₂ p − τ),
    p being the drawn token's probability before the cut.
    """

    def __init__(self, tau: float, eta: float) -> None:
        self.tau, self.eta = tau, eta
        self.mu: list[float] = []
        """Of each text, in bits."""
        self._previous: tuple[torch.Tensor, list[tuple[float, float]]] | None = None
        """The scores [B, V] of the step before; of each row the greatest, and the log of the sum of exponentials."""

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with what surprises more than μ at −∞; `ids` [B, T] end with what was drawn last."""
        if self._previous is None:
            self.mu = [2 * self.tau] * len(scores)
        else:
            drawn = zip(self.mu, _surprises(*self._previous, ids), strict=True)
            self.mu = [mu - self.eta * (surprise - self.tau) for mu, surprise in drawn]
        found = max_and_logsumexp(scores)
        self._previous = scores, found
        floors = [min(whole - _BIT * mu, best) for mu, (best, whole) in zip(self.mu, found, strict=True)]
        return cut_below(scores, floors)

    def make_observer(self) -> StageObserver:
        """Of μ and the surprises of this step."""
        limits = self.mu
        assert self._previous is not None
        _, sums = self._previous
        return lambda row, before, after, chosen: partial(
            _surprise_detail, self.tau, limits[row], (sums[row][1] - before[chosen].item()) / _BIT
        )

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i was row `rows[i]`."""
        if self._previous is not None:
            (scores, sums), places = self._previous, rows.tolist()
            self.mu, self._previous = [self.mu[row] for row in places], (scores[rows], [sums[row] for row in places])


def _surprise_detail(tau: float, limit: float, surprise: float) -> StageDetail:
    from core.events import StageDetail, SurpriseAim  # made when something runs

    return StageDetail(aim=SurpriseAim(tau, limit, surprise))


def _surprises(scores: torch.Tensor, sums: list[tuple[float, float]], ids: torch.Tensor) -> list[float]:
    """In bits, by each row of scores [B, V], of the token with which its text of ids [B, T] ends."""
    return [(whole - score) / _BIT for (_, whole), score in zip(sums, last_token_scores(scores, ids), strict=True)]


def make(value: float, context: Context) -> Mirostat:
    """A memory for the texts of one run."""
    return Mirostat(float(value), float(context.options.get(ETA.name, ETA.default)))


PROCESSOR = Processor(
    name="mirostat_tau",
    make=make,
    order=238,
    label=mark("mirostat τ {v}"),
    phrase=mark("mirostat with a target of {v} bits"),
    kind="cut",
    parameter=Parameter(
        "mirostat_tau", mark("Mirostat"), "float", None,
        mark("The surprise, in bits a token, that the text is held to: the cut moves after every token. 5 is usual for "
             "large models; 2 suits the small ones here."),
        minimum=0.0, maximum=20.0, soft_maximum=8.0, step=0.1, exclusive=True, option=True, advanced=True,
    ),
    beside=(ETA,),
    panel="sampling_advanced",
    shown=80,
    samples=True,
    drafts=False,
    in_turn=True,
    follow=Mirostat.reorder,
    observe=Mirostat.make_observer,
)  # fmt: skip
