"""Top-nσ: keeps scores within a few standard deviations of the maximum."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from decodescope.core.common.claim import Claim, sampling_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Context, Processor, no_detail
from decodescope.core.processors.score_stats import cut_below, max_and_deviation, score_histogram
from decodescope.resources.language import mark

if TYPE_CHECKING:
    import torch

    from decodescope.core.events import StageDetail
    from decodescope.core.processors.base import DetailFactory, StageObserver


HISTOGRAM_BARS = 32
"""Number of bars in the histogram of the detail view."""


class TopNSigma:
    """Sets scores below max − n · σ to −∞; σ is the standard deviation of all finite scores (Tang et al. 2024)."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._found: list[tuple[float, float, float | None]] = []

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] without those too far below the maximum."""
        self._found = max_and_deviation(scores)
        return cut_below(scores, [best - self._width * deviation for best, deviation, _ in self._found])

    def make_observer(self) -> StageObserver:
        """Return an observer of the scores at this step."""
        found = self._found

        def observe(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> DetailFactory:
            best, deviation, known = found[row]
            if not math.isfinite(best):
                return no_detail
            lowest = _min_finite(before) if known is None else known
            floor, parts = best - self._width * deviation, score_histogram(before, lowest, best, HISTOGRAM_BARS)
            return partial(_spread_detail, best, deviation, floor, lowest, parts)

        return observe


def _spread_detail(best: float, deviation: float, floor: float, lowest: float, parts: tuple[int, ...]) -> StageDetail:
    from decodescope.core.events import ScoreSpread, StageDetail  # created on demand

    return StageDetail(spread=ScoreSpread(best, deviation, floor, lowest, parts))


def _min_finite(row: torch.Tensor) -> float:
    """Return the minimum of the finite scores [V]."""
    lowest = float(row.amin())
    return lowest if math.isfinite(lowest) else float(row[row.isfinite()].amin())


def make(value: float, context: Context) -> TopNSigma:
    """Create the cut of one run."""
    return TopNSigma(float(value))


CLAIMS = (
    Claim(
        name="top-n-sigma-survives-heat",
        title=mark("Top-nσ is not affected by temperature"),
        plain=mark("A cut that looks at the scores before the temperature keeps a very "
            "hot text more sensible than top-p."),
        exact=mark("At temperature 2, the mean log-probability per token is higher with top-nσ 1 than with top-p 0.9."),
        source="Tang, Liu, Xu, Wang 2024, Top-nσ: Not All Logits Are You Need",
        address="https://arxiv.org/abs/2411.07641",
        baseline=sampling_cell(mark("Top-p 0.9"), temperature=2.0, top_p=0.9),
        tested=sampling_cell(mark("Top-nσ 1"), temperature=2.0, top_n_sigma=1.0),
        measure="log_probability", expects="higher", margin=0.25, seeds=2,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="top_n_sigma",
    make=make,
    order=158,
    label=mark("top-nσ {v}"),
    plain_phrase=mark("the rule “only scores close to the best”"),
    claims=CLAIMS,
    kind="cut",
    parameter=Parameter(
        "top_n_sigma", mark("Top-nσ"), "float", None,
        mark("Keep tokens whose score is within this many standard deviations of the maximum. It uses the "
            "scores before the temperature, so a high temperature does not keep more tokens."),
        minimum=0.0, maximum=100.0, soft_maximum=4.0, step=0.1, exclusive=True, option=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=50,
    samples=True,
    uses_scores_only=True,
    observe=TopNSigma.make_observer,
    score_rule="deviation",
)  # fmt: skip
