"""Mirostat 2: the cut moves from step to step, so that the text surprises by as much as was asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.events import StageDetail
    from core.processors.base import Witness

ETA = Parameter(
    "mirostat_eta", mark("Mirostat's learning rate"), "float", 0.1,
    mark("How far the cut moves when a token surprised more or less than was asked for."),
    minimum=0.0, maximum=10.0, soft_maximum=1.0, step=0.01, exclusive=True, option=True, advanced=True,
)  # fmt: skip


class Mirostat:
    """μ of every text, and the surprise of every token at the step before (Basu et al. 2021, Algorithm 2).

    μ begins at 2τ. Kept are tokens with −log₂ p ≤ μ, at least the likeliest; behind the draw μ −= η · (−log₂ p − τ),
    p being the drawn token's probability before the cut.
    """

    def __init__(self, tau: float, eta: float) -> None:
        self.tau, self.eta = tau, eta
        self.mu: torch.Tensor | None = None
        self._surprise: torch.Tensor | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] with what surprises more than μ at −∞; `ids` [B, T] end with what was drawn last."""
        if self.mu is None:
            self.mu = scores.new_full((scores.shape[0], 1), 2 * self.tau)
        elif self._surprise is not None:
            self.mu = self.mu - self.eta * (self._surprise.gather(-1, ids[:, -1:]) - self.tau)
        surprise = scores.log_softmax(-1) / -math.log(2)
        self._surprise = surprise
        least = surprise.amin(-1, keepdim=True)
        return scores.masked_fill(surprise > self.mu.maximum(least), -float("inf"))

    def witness(self) -> Witness:
        """Of μ and the surprises of this step."""
        limit, surprise = self.mu, self._surprise

        from core.events import StageDetail, SurpriseAim  # made when something runs

        def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> StageDetail:
            assert limit is not None
            assert surprise is not None
            return StageDetail(aim=SurpriseAim(self.tau, limit.tolist()[row][0], float(surprise[row, chosen])))

        return tell

    def follow(self, rows: torch.Tensor) -> None:
        """Row i was row `rows[i]`."""
        if self.mu is not None and self._surprise is not None:
            self.mu, self._surprise = self.mu[rows], self._surprise[rows]


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
    follow=Mirostat.follow,
    witness=Mirostat.witness,
)  # fmt: skip
