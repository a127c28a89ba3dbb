"""The columns of the table of a comparison: what each says, how it sorts, and which give way where it is narrow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.state.comparison.run_figures import RunFigures
from core import words
from resources.language import mark

Value = float | int | None


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of every run."""

    title: str
    help: str
    value: Callable[[RunFigures], Value]
    words: Callable[[float], str]
    width: int
    """Pixels at 100 %."""


_share = words.whole_percent


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimal(value: float) -> str:
    return words.decimal(value)


LENGTH = Column(mark("Tokens"), mark("New tokens of the text"), lambda f: f.length, _count, 62)
DISTINCT_1 = Column(mark("Distinct-1"), mark("Different tokens ÷ tokens"), lambda f: f.distinct_1, _share, 78)
DISTINCT_2 = Column(mark("Distinct-2"), mark("Different pairs of tokens ÷ pairs"), lambda f: f.distinct_2, _share, 78)
DISTINCT_3 = Column(
    mark("Distinct-3"), mark("Different triples of tokens ÷ triples"), lambda f: f.distinct_3, _share, 78
)
REPEATED = Column(
    mark("Repeated"), mark("Share of the 4-grams that stood in the text before"), lambda f: f.repeated, _share, 74
)  # fmt: skip
ENTROPY = Column(
    mark("Entropy"), mark("Mean entropy of the model at each token, in bits"), lambda f: f.entropy, _decimal, 68
)
LOG_P = Column(
    mark("log p"),
    mark("Mean natural logarithm of the tokens' probabilities, by the model alone"),
    lambda f: f.log_probability,
    _decimal,
    60,
)
SPEED = Column(mark("Speed"), mark("Tokens a second behind the first"), lambda f: f.tokens_per_second, words.rate, 84)
FIRST = Column(mark("First token"), mark("Time to the first token"), lambda f: f.first_token, words.duration, 84)
TIME = Column(mark("Time"), mark("Of the whole run"), lambda f: f.seconds or None, words.duration, 66)
CACHE = Column(mark("Cache"), mark("Bytes of the cache at the end"), lambda f: f.cache_bytes, words.size, 76)
PEAK = Column(mark("Peak"), mark("Most bytes of the cache"), lambda f: f.cache_peak, words.size, 76)
ACCEPTED = Column(mark("Accepted"), mark("Accepted ÷ examined drafted tokens"), lambda f: f.acceptance, _share, 74)
PASSES = Column(mark("Passes"), mark("Forward passes of the model"), lambda f: f.passes, _count, 64)

COLUMNS = (LENGTH, DISTINCT_1, DISTINCT_2, DISTINCT_3, REPEATED, ENTROPY, LOG_P, SPEED, FIRST, TIME, CACHE, PEAK,
           ACCEPTED, PASSES)  # fmt: skip
OF_TEXTS = (REPEATED, LOG_P, DISTINCT_2, SPEED, ENTROPY, LENGTH, ACCEPTED, TIME, DISTINCT_1, DISTINCT_3, PASSES, FIRST,
            CACHE, PEAK)  # fmt: skip
"""Which come first where texts are compared and there is no room for all."""
OF_CACHES = (PEAK, SPEED, CACHE, FIRST, TIME, LENGTH, LOG_P, REPEATED, ENTROPY, DISTINCT_2, DISTINCT_1, DISTINCT_3,
             ACCEPTED, PASSES)  # fmt: skip
