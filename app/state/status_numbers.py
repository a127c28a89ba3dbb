"""The figures of the status line, while a run is under way and after it."""

from __future__ import annotations

from typing import NamedTuple

from app.state.run import Run


class StatusNumbers(NamedTuple):
    """What is known of a run's speed and size; None where it is not known yet. Seconds, tokens a second, bytes."""

    first_token: float | None = None
    prefill: float | None = None
    decode: float | None = None
    cache: int | None = None
    acceptance: float | None = None


def compute_status_numbers(run: Run) -> StatusNumbers:
    """The run's own metrics once it has ended, else what its events so far amount to."""
    if run.finished is not None:
        metrics = run.finished.metrics
        return StatusNumbers(
            metrics.time_to_first_token,
            metrics.prefill_tokens_per_second,
            metrics.decode_tokens_per_second,
            None if run.started is not None and run.started.engine else metrics.cache_bytes,
            metrics.acceptance_rate,
        )
    return StatusNumbers(_first_token(run), _prefill(run), _decode(run), run.cache.bytes if run.cache else None)


def _first_token(run: Run) -> float | None:
    if run.prefilled is None or not run.sequences[0].tokens:
        return None
    return run.prefilled.seconds + run.sequences[0].tokens[0].seconds


def _prefill(run: Run) -> float | None:
    if run.prefilled is None or run.prefilled.seconds <= 0:
        return None
    return (run.prefilled.tokens - run.prefilled.reused) / run.prefilled.seconds


def _decode(run: Run) -> float | None:
    """Tokens of all texts after their first, over the time of the longest of them (they advance together)."""
    new = sum(max(0, len(sequence.tokens) - 1) for sequence in run.sequences)
    seconds = max(sum(token.seconds for token in sequence.tokens[1:]) for sequence in run.sequences)
    return new / seconds if seconds > 0 else None
