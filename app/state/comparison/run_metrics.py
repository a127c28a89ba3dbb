"""Figures of one text, by which runs are compared. Each is a function of the tokens alone, or read off the metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.state.run import Run
from core.events import Metrics, TokenChosen

REPEATED_LENGTH = 4
"""Tokens of the n-grams whose repetition is counted, as in Welleck et al. 2020 (seq-rep-4)."""
_NAT = math.log(2)


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """One run in figures; of several texts, those of the first. None where a run has no such number.

    Shares are of 1, times seconds, sizes bytes.
    """

    length: int
    """New tokens, the one that ends the text included."""
    distinct_1: float | None = None
    """Different tokens ÷ tokens (`distinct`)."""
    distinct_2: float | None = None
    distinct_3: float | None = None
    repeated: float | None = None
    """Share of the 4-grams that the text holds already (`repeated`)."""
    entropy: float | None = None
    """Mean over the tokens of the model's entropy, in bits: how open each choice was."""
    log_probability: float | None = None
    """Mean over the tokens of the natural logarithm of their probability by the model alone."""
    tokens_per_second: float | None = None
    first_token: float | None = None
    seconds: float | None = None
    cache_bytes: int | None = None
    cache_peak: int | None = None
    acceptance: float | None = None
    """Speculation: accepted ÷ examined drafted tokens."""
    passes: int | None = None
    """Forward passes of the model."""


def compute_run_metrics(run: Run) -> RunMetrics:
    """All of them; those of speed and size are there once the run has ended by itself or was stopped."""
    tokens = run.sequences[0].tokens
    ids = [token.id for token in tokens if not token.special]
    of_text = RunMetrics(
        len(tokens), distinct(ids, 1), distinct(ids, 2), distinct(ids, 3), repeated(ids), mean_entropy(tokens),
        mean_log_probability(tokens),
    )  # fmt: skip
    return _with_metrics(of_text, run.finished.metrics) if run.finished is not None else of_text


def _with_metrics(run_metrics: RunMetrics, metrics: Metrics) -> RunMetrics:
    return replace(
        run_metrics,
        tokens_per_second=metrics.decode_tokens_per_second,
        first_token=metrics.time_to_first_token,
        seconds=metrics.seconds,
        cache_bytes=metrics.cache_bytes,
        cache_peak=metrics.cache_peak_bytes,
        acceptance=metrics.acceptance_rate,
        passes=metrics.target_passes,
    )


def distinct(ids: Sequence[int], n: int) -> float | None:
    """distinct-n (Li et al. 2016): different n-grams ÷ n-grams; None in a text of fewer than n tokens."""
    grams = [tuple(ids[at : at + n]) for at in range(len(ids) - n + 1)]
    return len(set(grams)) / len(grams) if grams else None


def repeated(ids: Sequence[int], n: int = REPEATED_LENGTH) -> float | None:
    """Share of the n-grams that stood in the text before: 1 − distinct-n; 0.0 where nothing is said twice."""
    share = distinct(ids, n)
    return None if share is None else 1 - share


def mean_entropy(tokens: Sequence[TokenChosen]) -> float | None:
    """Mean entropy of the model's own distribution at the tokens, in bits."""
    return _none_if_nan(sum(token.entropy for token in tokens) / len(tokens) / _NAT) if tokens else None


def mean_log_probability(tokens: Sequence[TokenChosen]) -> float | None:
    """Mean natural logarithm of the tokens' probabilities by the model alone; perplexity is exp of its negative."""
    return _none_if_nan(sum(token.raw_log_probability for token in tokens) / len(tokens)) if tokens else None


def _none_if_nan(mean: float) -> float | None:
    """None for NaN: an engine on another machine does not tell it."""
    return None if math.isnan(mean) else mean
