"""The figures of a scored text: how well a model foretells it, and where two models part. No Qt in here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from core import words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import TokenChosen, TokenCompared

BANDS = (10, 100, 1000)
"""Ranks up to which a token is in the first, second, third band of GLTR; the fourth has no end."""


BAND_NAMES = (*(f"≤ {last:,}" for last in BANDS), "more")


class ScoreStats(NamedTuple):
    """Log-probabilities natural; `bands`: how many tokens are in each."""

    tokens: int
    mean_log_probability: float
    perplexity: float
    bands: tuple[int, ...]


def band(rank: int) -> int:
    """0 for ranks up to 10, 1 up to 100, 2 up to 1,000, 3 beyond."""
    return sum(rank > last for last in BANDS)


def compute_score_stats(tokens: Sequence[TokenChosen]) -> ScoreStats:
    """Of tokens by the model alone; a text of none has a perplexity of 1."""
    mean = sum(token.raw_log_probability for token in tokens) / len(tokens) if tokens else 0.0
    bands = [band(token.rank) for token in tokens if token.rank]  # 0: an engine did not tell it
    return ScoreStats(len(tokens), mean, _perplexity(mean), tuple(bands.count(one) for one in range(len(BANDS) + 1)))


def _perplexity(mean: float) -> float:
    return math.exp(-mean) if mean > -700 else math.inf


def summary_text(scores: ScoreStats) -> str:
    """`42 tokens · perplexity 10.1 · mean log-probability −2.31`."""
    mean, perplexity = words.decimal(scores.mean_log_probability), _short(scores.perplexity)
    return tr("{tokens} · perplexity {perplexity} · mean log-probability {mean}").format(
        tokens=words.count(scores.tokens, "token"), perplexity=perplexity, mean=mean
    )


def _short(perplexity: float) -> str:
    if perplexity < 1e6:
        return f"{perplexity:,.{0 if perplexity >= 100 else 1}f}"
    return "∞" if math.isinf(perplexity) else f"{perplexity:.1e}"


def bands_text(scores: ScoreStats) -> str:
    """`rank ≤ 10: 81 % · ≤ 100: 12 % · ≤ 1,000: 5 % · more: 2 %`."""
    return tr("rank {bands}").format(
        bands=" · ".join(f"{name}: {share}" for name, share in zip(BAND_NAMES, band_percentages(scores), strict=True))
    )


def band_percentages(scores: ScoreStats) -> list[str]:
    """What part of the text is in each band."""
    return [words.brief_percent(count / scores.tokens) if count else "0 %" for count in scores.bands]


def largest_divergences(compared: Sequence[TokenCompared], max_count: int) -> list[TokenCompared]:
    """Where two models are farthest apart, the farthest first."""
    apart = [one for one in compared if one.divergence > 0]
    return sorted(apart, key=lambda one: (-one.divergence, one.step))[:max_count]


def mean_divergence(compared: Sequence[TokenCompared]) -> float:
    """Bits a token."""
    return sum(one.divergence for one in compared) / max(len(compared), 1)


def comparison_mean_log_probability(compared: Sequence[TokenCompared]) -> float:
    """The second model's mean log-probability."""
    return sum(one.log_probability for one in compared) / max(len(compared), 1)
