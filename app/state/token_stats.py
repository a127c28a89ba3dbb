"""Statistics of a scored text: perplexity, rank bands, and where two models differ. No Qt in here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core import words
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.state.run import Run
    from decodescope.core.events import TokenChosen, TokenCompared

BANDS = (10, 100, 1000)
"""Upper ranks of the first three bands of GLTR; the fourth is unbounded."""


BAND_NAMES = (*(f"≤ {last:,}" for last in BANDS), "more")


class ScoreStats(NamedTuple):
    """Statistics of a scored text, with natural logarithms; `bands` counts the tokens in each band."""

    tokens: int
    mean_log_probability: float
    perplexity: float
    bands: tuple[int, ...]


def band(rank: int) -> int:
    """Return the band of a rank: 0 up to 10, 1 up to 100, 2 up to 1,000, 3 beyond."""
    return sum(rank > last for last in BANDS)


def compute_score_stats(tokens: Sequence[TokenChosen]) -> ScoreStats:
    """Compute the statistics of tokens by the model alone; an empty text has perplexity 1."""
    mean = sum(token.raw_log_probability for token in tokens) / len(tokens) if tokens else 0.0
    bands = [band(token.rank) for token in tokens if token.rank]  # 0: not reported by the engine
    return ScoreStats(len(tokens), mean, _perplexity(mean), tuple(bands.count(one) for one in range(len(BANDS) + 1)))


def _perplexity(mean: float) -> float:
    return math.exp(-mean) if mean > -700 else math.inf


def summary_text(scores: ScoreStats) -> str:
    """Return `42 tokens · perplexity 10.1 · mean log-probability −2.31`."""
    mean, perplexity = words.decimal(scores.mean_log_probability), _short(scores.perplexity)
    return tr("{tokens} · perplexity {perplexity} · mean log-probability {mean}").format(
        tokens=words.count(scores.tokens, "token"), perplexity=perplexity, mean=mean
    )


def _short(perplexity: float) -> str:
    if perplexity < 1e6:
        return f"{perplexity:,.{0 if perplexity >= 100 else 1}f}"
    return "∞" if math.isinf(perplexity) else f"{perplexity:.1e}"


def bands_text(scores: ScoreStats) -> str:
    """Return `rank ≤ 10: 81 % · ≤ 100: 12 % · ≤ 1,000: 5 % · more: 2 %`."""
    return tr("rank {bands}").format(
        bands=" · ".join(f"{name}: {share}" for name, share in zip(BAND_NAMES, band_percentages(scores), strict=True))
    )


def band_percentages(scores: ScoreStats) -> list[str]:
    """Return the fraction of the text in each band."""
    return [words.brief_percent(count / scores.tokens if count else 0, is_exact=True) for count in scores.bands]


def largest_divergences(comparisons: Sequence[TokenCompared], max_count: int) -> list[TokenCompared]:
    """Return the tokens where the two models differ most, the largest difference first."""
    apart = [one for one in comparisons if one.divergence > 0]
    return sorted(apart, key=lambda one: (-one.divergence, one.step))[:max_count]


def mean_divergence(comparisons: Sequence[TokenCompared]) -> float:
    """Return the mean divergence in bits per token."""
    return sum(one.divergence for one in comparisons) / max(len(comparisons), 1)


def comparison_mean_log_probability(comparisons: Sequence[TokenCompared]) -> float:
    """Return the comparison model's mean log-probability."""
    return sum(one.log_probability for one in comparisons) / max(len(comparisons), 1)


DEFAULT_COUNT = 5
"""Number of most uncertain steps to report."""
FULL_BAR_BITS = 12.0
"""Bits represented by a full bar."""
_BITS = math.log(2)


class UncertaintyMeasure(NamedTuple):
    """A measure of a step's uncertainty."""

    title: str
    describe: Callable[[TokenChosen], str]
    """Text about a step before translation; `{value}` is replaced by the number."""
    compute: Callable[[TokenChosen], float]
    height: Callable[[float], float] = float
    """Height of a bar in bits."""


def bar_height(measure: UncertaintyMeasure, token: TokenChosen) -> float:
    """Return the height of a step's bar in bits; 0 if the engine does not report the value."""
    value = measure.compute(token)
    return 0.0 if math.isnan(value) else measure.height(value)


def surprise(token: TokenChosen) -> float:
    """Return the surprise of the token in bits; NaN if unknown."""
    return max(-token.raw_log_probability / _BITS + 0.0, 0.0)  # the argument order preserves NaN


def entropy(token: TokenChosen) -> float:
    """Return the entropy of the step in bits."""
    return token.entropy / _BITS


def margin(token: TokenChosen) -> float:
    """Return the probability of the most likely token minus that of the next; 1 if no other was recorded, NaN if
    unknown.
    """
    if math.isnan(token.raw_probability):
        return math.nan
    shares = sorted((item.raw_probability for item in token.alternatives if item.raw_probability >= 0), reverse=True)
    return shares[0] - shares[1] if len(shares) > 1 else 1.0


def varentropy(token: TokenChosen) -> float:
    """Return Σ p (−log₂ p − H)² in bits², over the recorded tokens if the run does not contain the value."""
    if token.varentropy is not None:
        return token.varentropy / _BITS**2
    if math.isnan(token.entropy):
        return math.nan
    positive = (item for item in token.alternatives if item.raw_probability > 0)
    return sum(item.raw_probability * ((-item.raw_log_probability - token.entropy) / _BITS) ** 2 for item in positive)


def _fixed_text(words: str) -> Callable[[TokenChosen], str]:
    return lambda token: words


def _varentropy_text(token: TokenChosen) -> str:
    return _VARENTROPY if token.varentropy is not None else _VARENTROPY_OF_RECORDED


_VARENTROPY = mark("varentropy {value:.2f} bits²")
_VARENTROPY_OF_RECORDED = mark("varentropy {value:.2f} bits² (recorded tokens only)")
MEASURES: dict[str, UncertaintyMeasure] = {
    "surprise": UncertaintyMeasure(mark("Surprise"), _fixed_text(mark("surprise {value:.2f} bits")), surprise),
    "entropy": UncertaintyMeasure(mark("Entropy"), _fixed_text(mark("entropy {value:.2f} bits")), entropy),
    "varentropy": UncertaintyMeasure(mark("Varentropy"), _varentropy_text, varentropy, math.sqrt),
    "margin": UncertaintyMeasure(
        mark("Margin"),
        _fixed_text(mark("margin {value:.2f} between the top two")),
        margin,
        lambda share: FULL_BAR_BITS * (1.0 - share),
    ),
}
"""Measures by name; a higher bar means more uncertainty."""


def most_uncertain(tokens: Sequence[TokenChosen], count: int = DEFAULT_COUNT) -> list[int]:
    """Return the indices of the steps with the highest entropy, the highest first, ties in text order. Steps without a
    recorded entropy are skipped, those at which the model was nearly certain, and tokens written by force.
    """
    ranked = sorted((-token.entropy, n) for n, token in enumerate(tokens) if not math.isnan(token.entropy))
    # the alternatives of a step are made when they are first read: read few
    return list(islice((n for _, n in ranked if _is_uncertain(tokens[n])), count))


def most_surprising(tokens: Sequence[TokenChosen]) -> int | None:
    """Return the index of the token that the model found least likely, the first of equals; None if no probability is
    known. Special tokens, and those written by force, count only if there is nothing else: the end of the text explains
    little.
    """
    bits = (
        (token.is_special is not False or token.origin == "forced", -surprise(token), n)
        for n, token in enumerate(tokens)
    )
    known = [entry for entry in bits if not math.isnan(entry[1])]
    return min(known)[2] if known else None


def _is_uncertain(token: TokenChosen) -> bool:
    """Return whether no token had so much probability that the sentence about it says "nearly certain"."""
    if token.origin == "forced":
        return False
    known = (item.raw_probability for item in token.alternatives if not math.isnan(item.raw_probability))
    return max((token.raw_probability, *known)) <= words.CERTAIN


def uncertain_steps(run: Run | None) -> list[int]:
    """Return the indices of the most uncertain steps of a finished run."""
    return most_uncertain(run.tokens) if run is not None and run.finished is not None else []


def uncertain_unavailable_reason(run: Run | None) -> str:
    """Return why there is no most uncertain step to go to, as a sentence; empty if there is one."""
    if uncertain_steps(run):
        return ""
    if run is not None and run.finished is None:
        return tr("The most uncertain steps are known once the run has ended.")
    if run is None or not run.tokens:
        return tr("There is no text yet. Run something first.")
    if any(not math.isnan(token.entropy) for token in run.tokens):
        return tr("The model was nearly certain at every step.")
    return tr("This run does not contain uncertainty values.")
