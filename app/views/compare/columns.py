"""The columns of the table of a comparison: what each says, how it sorts, and which give way where it is narrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.state.comparison.run_figures import RunMetrics
from core import words
from resources.language import mark

Value = float | int | None


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A figure of every run."""

    title: str
    help: str
    value: Callable[[RunMetrics], Value]
    format: Callable[[float], str]
    width: int
    """Pixels at 100 %."""


_percent = words.whole_percent


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimal(value: float) -> str:
    return words.decimal(value)


LENGTH = MetricColumn(mark("Tokens"), mark("New tokens of the text"), lambda f: f.length, _count, 62)
DISTINCT_1 = MetricColumn(mark("Distinct-1"), mark("Different tokens ÷ tokens"), lambda f: f.distinct_1, _percent, 78)
DISTINCT_2 = MetricColumn(
    mark("Distinct-2"), mark("Different pairs of tokens ÷ pairs"), lambda f: f.distinct_2, _percent, 78
)
DISTINCT_3 = MetricColumn(
    mark("Distinct-3"), mark("Different triples of tokens ÷ triples"), lambda f: f.distinct_3, _percent, 78
)
REPEATED = MetricColumn(
    mark("Repeated"), mark("Share of the 4-grams that stood in the text before"), lambda f: f.repeated, _percent, 74
)  # fmt: skip
ENTROPY = MetricColumn(
    mark("Entropy"), mark("Mean entropy of the model at each token, in bits"), lambda f: f.entropy, _decimal, 68
)
LOG_P = MetricColumn(
    mark("log p"),
    mark("Mean natural logarithm of the tokens' probabilities, by the model alone"),
    lambda f: f.log_probability,
    _decimal,
    60,
)
SPEED = MetricColumn(
    mark("Speed"), mark("Tokens a second behind the first"), lambda f: f.tokens_per_second, words.rate, 84
)
FIRST = MetricColumn(mark("First token"), mark("Time to the first token"), lambda f: f.first_token, words.duration, 84)
TIME = MetricColumn(mark("Time"), mark("Of the whole run"), lambda f: f.seconds or None, words.duration, 66)
CACHE = MetricColumn(mark("Cache"), mark("Bytes of the cache at the end"), lambda f: f.cache_bytes, words.size, 76)
PEAK = MetricColumn(mark("Peak"), mark("Most bytes of the cache"), lambda f: f.cache_peak, words.size, 76)
ACCEPTED = MetricColumn(
    mark("Accepted"), mark("Accepted ÷ examined drafted tokens"), lambda f: f.acceptance, _percent, 74
)
PASSES = MetricColumn(mark("Passes"), mark("Forward passes of the model"), lambda f: f.passes, _count, 64)

METRIC_COLUMNS = (LENGTH, DISTINCT_1, DISTINCT_2, DISTINCT_3, REPEATED, ENTROPY, LOG_P, SPEED, FIRST, TIME, CACHE, PEAK,
           ACCEPTED, PASSES)  # fmt: skip
TEXT_COLUMN_PRIORITY = (REPEATED, LOG_P, DISTINCT_2, SPEED, ENTROPY, LENGTH, ACCEPTED, TIME, DISTINCT_1, DISTINCT_3, PASSES, FIRST,
            CACHE, PEAK)  # fmt: skip
"""Which come first where texts are compared and there is no room for all."""
CACHE_COLUMN_PRIORITY = (PEAK, SPEED, CACHE, FIRST, TIME, LENGTH, LOG_P, REPEATED, ENTROPY, DISTINCT_2, DISTINCT_1, DISTINCT_3,
             ACCEPTED, PASSES)  # fmt: skip
