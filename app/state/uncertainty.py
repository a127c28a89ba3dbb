"""How much the model doubted at each step, from what a run has told: as curves, and the steps of most doubt."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from resources.language import mark, tr

if TYPE_CHECKING:
    from app.state.run import Run
    from core.events import TokenChosen

DEFAULT_COUNT = 5
"""Steps of most doubt that are told."""
FULL_BAR_BITS = 12.0
"""Bits of a whole bar."""
_BITS = math.log(2)


class UncertaintyMeasure(NamedTuple):
    """One way to measure the doubt of a step."""

    title: str
    describe: Callable[[TokenChosen], str]
    """What is said of a step, before it is translated: `{value}` stands for the figure."""
    compute: Callable[[TokenChosen], float]
    height: Callable[[float], float] = float
    """How high that is drawn, in bits."""


def bar_height(measure: UncertaintyMeasure, token: TokenChosen) -> float:
    """How high a step is drawn, in bits; 0 where the engine does not tell it."""
    value = measure.compute(token)
    return 0.0 if math.isnan(value) else measure.height(value)


def surprise(token: TokenChosen) -> float:
    """Bits that the token told; NaN where that is not known."""
    return max(-token.raw_log_probability / _BITS + 0.0, 0.0)  # in this order NaN stays


def entropy(token: TokenChosen) -> float:
    """Bits that a token of this step tells on average."""
    return token.entropy / _BITS


def margin(token: TokenChosen) -> float:
    """p of the likeliest token less p of the next; 1 where no other was told, NaN where nothing is."""
    if math.isnan(token.raw_probability):
        return math.nan
    shares = sorted((item.raw_probability for item in token.alternatives if item.raw_probability >= 0), reverse=True)
    return shares[0] - shares[1] if len(shares) > 1 else 1.0


def varentropy(token: TokenChosen) -> float:
    """Σ p (−log₂ p − H)² in bits²; of those tokens that the run has told where it does not tell the figure."""
    if token.varentropy is not None:
        return token.varentropy / _BITS**2
    if math.isnan(token.entropy):
        return math.nan
    told = (item for item in token.alternatives if item.raw_probability > 0)
    return sum(item.raw_probability * ((-item.raw_log_probability - token.entropy) / _BITS) ** 2 for item in told)


def _fixed_text(words: str) -> Callable[[TokenChosen], str]:
    return lambda token: words


def _varentropy_text(token: TokenChosen) -> str:
    return _VARENTROPY if token.varentropy is not None else _VARENTROPY_OF_RECORDED


_VARENTROPY = mark("varentropy {value:.2f} bits²")
_VARENTROPY_OF_RECORDED = mark("varentropy {value:.2f} bits² (of the tokens that were kept)")
MEASURES: dict[str, UncertaintyMeasure] = {
    "surprise": UncertaintyMeasure(mark("Surprise"), _fixed_text(mark("surprise {value:.2f} bits")), surprise),
    "entropy": UncertaintyMeasure(mark("Entropy"), _fixed_text(mark("entropy {value:.2f} bits")), entropy),
    "varentropy": UncertaintyMeasure(mark("Varentropy"), _varentropy_text, varentropy, math.sqrt),
    "margin": UncertaintyMeasure(
        mark("Margin"),
        _fixed_text(mark("margin {value:.2f} between the first two")),
        margin,
        lambda share: FULL_BAR_BITS * (1.0 - share),
    ),
}
"""By name; the higher a bar, the more doubt."""


def most_uncertain(tokens: Sequence[TokenChosen], count: int = DEFAULT_COUNT) -> list[int]:
    """Places of the steps of most entropy, the most doubtful first; of two alike the earlier. None where it is not
    told."""
    told = ((-token.entropy, n) for n, token in enumerate(tokens) if not math.isnan(token.entropy))
    return [place for _, place in heapq.nsmallest(count, told)]


def uncertain_steps(run: Run | None) -> list[int]:
    """Places of the steps of most doubt, once the run has ended."""
    return most_uncertain(run.tokens) if run is not None and run.finished is not None else []


def uncertain_unavailable_reason(run: Run | None) -> str:
    """Why no step of most doubt can be gone to, as a sentence; empty where one can."""
    if uncertain_steps(run):
        return ""
    if run is not None and run.finished is None:
        return tr("Which steps were the most doubtful is known once the run has ended.")
    if run is None or not run.tokens:
        return tr("There is no text yet: run something first.")
    return tr("This run does not tell how much the model doubted.")
