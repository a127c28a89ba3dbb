"""Mirostat 2: moves the cut at each step to keep the surprise of the text at a target."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import RANDOMNESS, Parameter
from decodescope.core.processors.base import Context, Processor
from decodescope.core.processors.score_stats import cut_below, last_token_scores, max_and_logsumexp
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import torch

    from decodescope.core.events import StageDetail
    from decodescope.core.processors.base import StageObserver

ETA = Parameter(
    "mirostat_eta", mark("Mirostat learning rate"), "float", 0.1,
    mark("How far the cut moves when a token is more or less surprising than the target."),
    minimum=0.0, maximum=10.0, soft_maximum=1.0, step=0.01, exclusive=True, option=True, advanced=True,
    group=RANDOMNESS,
)  # fmt: skip


_BIT = math.log(2)
"""One bit in nats."""


class Mirostat:
    """μ of each text, updated by the surprise of the previous token (Basu et al. 2021, Algorithm 2).

    μ starts at 2τ. Tokens with −log₂ p ≤ μ are kept, at least the likeliest; after the draw μ −= η · (−log₂ p − τ),
    with p the drawn token's probability before the cut.
    """

    def __init__(self, tau: float, eta: float) -> None:
        self.tau, self.eta = tau, eta
        self.mu: list[float] = []
        """μ of each text in bits."""
        self._previous: tuple[torch.Tensor, list[tuple[float, float]]] | None = None
        """Scores [B, V] of the previous step, with the maximum and logsumexp of each row."""

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] with tokens more surprising than μ at −∞; `ids` [B, T] end with the latest drawn
        tokens.
        """
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
        """Return an observer of μ and the surprises of this step."""
        limits = self.mu
        assert self._previous is not None
        _, sums = self._previous
        return lambda row, before, after, chosen: partial(
            _surprise_detail, self.tau, limits[row], (sums[row][1] - before[chosen].item()) / _BIT
        )

    def reorder(self, rows: torch.Tensor) -> None:
        """Reorder the rows: new row i is old row `rows[i]`."""
        if self._previous is not None:
            (scores, sums), places = self._previous, rows.tolist()
            self.mu, self._previous = [self.mu[row] for row in places], (scores[rows], [sums[row] for row in places])


def _surprise_detail(tau: float, limit: float, surprise: float) -> StageDetail:
    from decodescope.core.events import StageDetail, SurpriseAim  # created on demand

    return StageDetail(aim=SurpriseAim(tau, limit, surprise))


def _surprises(scores: torch.Tensor, sums: list[tuple[float, float]], ids: torch.Tensor) -> list[float]:
    """Return the surprise in bits, by each row of scores [B, V], of the last token of its text in ids [B, T]."""
    return [(whole - score) / _BIT for (_, whole), score in zip(sums, last_token_scores(scores, ids), strict=True)]


def make(value: float, context: Context) -> Mirostat:
    """Create the state of one run."""
    return Mirostat(float(value), float(context.settings.get(ETA.name, ETA.default)))


CLAIMS = (
    Claim(
        name="mirostat-holds-the-surprise",
        title=mark("Mirostat holds the surprise at its target"),
        plain=mark("Adjusting the cut after each word keeps a text as surprising as "
            "wanted, which a fixed cut does not."),
        exact=mark("The mean surprise of a text is closer to a target of 1 bit per "
            "token with mirostat than with top-k 50."),
        source="Basu, Ramachandran, Keskar, Varshney 2021, Mirostat: A Neural Text Decoding "
            "Algorithm that Directly Controls Perplexity",
        address="https://arxiv.org/abs/2007.14966",
        baseline=sampling_cell(mark("Top-k 50"), top_k=50),
        tested=sampling_cell(mark("Mirostat 1"), mirostat_tau=1.0),
        measure="surprise_distance", expects="lower", margin=0.1, max_new_tokens=128, seeds=2, target=1.0,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="mirostat_tau",
    make=make,
    order=238,
    label=mark("mirostat τ {v}"),
    phrase=mark("mirostat with a target of {v} bits"),
    plain_phrase=mark("the target for a steady surprise"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "mirostat_tau", mark("Mirostat"), "float", None,
        mark("Target surprise of the text in bits per token; the cut moves after every token. 5 is usual "
            "for large models; 2 suits the small bundled ones."),
        minimum=0.0, maximum=20.0, soft_maximum=8.0, step=0.1, exclusive=True, option=True, advanced=True,
        group=RANDOMNESS,
    ),
    extra_parameters=(ETA,),
    panel="sampling_advanced",
    shown=80,
    samples=True,
    drafts=False,
    needs_every_token=True,
    reorder_rows=Mirostat.reorder,
    observe=Mirostat.make_observer,
)  # fmt: skip
