"""Metrics of a text for comparing runs, computed from its tokens or taken from the run's metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from decodescope.app.state.run import Run
from decodescope.core import measures
from decodescope.core.events import Metrics
from decodescope.core.measures import distinct, mean_entropy, mean_log_probability

REPEATED_LENGTH = 4
"""Size of the n-grams for the repetition metric, as in Welleck et al. 2020 (seq-rep-4)."""


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """Metrics of one run; with several sequences, those of the first. None if a run lacks a value.

    Fractions are of 1, times in seconds, sizes in bytes.
    """

    length: int
    """Number of new tokens, including the end-of-text token."""
    distinct_1: float | None = None
    """Distinct tokens ÷ tokens (`distinct`)."""
    distinct_2: float | None = None
    distinct_3: float | None = None
    repeated: float | None = None
    """Fraction of the 4-grams that occurred earlier in the text (`repeated`)."""
    entropy: float | None = None
    """Mean entropy of the model's distribution per token, in bits."""
    log_probability: float | None = None
    """Mean natural log probability per token, by the model alone."""
    tokens_per_second: float | None = None
    first_token: float | None = None
    seconds: float | None = None
    cache_bytes: int | None = None
    cache_peak: int | None = None
    acceptance: float | None = None
    """Speculative decoding: accepted ÷ verified positions of the drafts."""
    passes: int | None = None
    """Forward passes of the model."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """Values of the measures of plug-ins by name."""


def compute_run_metrics(run: Run) -> RunMetrics:
    """Return all metrics; those of speed and size exist once the run has finished or was stopped."""
    tokens = run.sequences[0].tokens
    ids = [token.id for token in tokens if not token.special]
    of_text = RunMetrics(
        len(tokens), distinct(ids, 1), distinct(ids, 2), distinct(ids, 3), repeated(ids), mean_entropy(tokens),
        mean_log_probability(tokens),
    )  # fmt: skip
    if run.finished is None:
        return of_text
    found = _with_metrics(of_text, run.finished.metrics)
    if not measures.registry:
        return found
    values, _errors = measures.measure(measures.MeasuredText(run.sequences[0].text, tuple(tokens)))
    return replace(found, measures=values)


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


def repeated(ids: Sequence[int], n: int = REPEATED_LENGTH) -> float | None:
    """Return the fraction of n-grams that occurred earlier in the text: 1 − distinct-n."""
    share = distinct(ids, n)
    return None if share is None else 1 - share
