"""The figures of the status line, while a run is under way and after it."""

from __future__ import annotations

from dataclasses import dataclass

from app.state.run import Run

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a run's speed and size; None where it is not known yet. Seconds, tokens a second, bytes."""

    first_token: float | None = None
    prefill: float | None = None
    decode: float | None = None
    cache: int | None = None
    acceptance: float | None = None


def figures(run: Run) -> Figures:
    """The run's own metrics once it has ended, else what its events so far amount to."""
    if run.finished is not None:
        metrics = run.finished.metrics
        return Figures(
            metrics.time_to_first_token,
            metrics.prefill_tokens_per_second,
            metrics.decode_tokens_per_second,
            metrics.cache_bytes,
            metrics.acceptance_rate,
        )
    return Figures(_first_token(run), _prefill(run), _decode(run), run.cache.bytes if run.cache else None)


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


def human_bytes(count: int) -> str:
    """`232 KiB`, `1.4 GiB`: binary units, at most four characters of number."""
    size = float(count)
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    digits = 0 if unit == "B" or size >= 100 else 1
    return f"{size:.{digits}f} {unit}"


def human_seconds(seconds: float) -> str:
    """`24 ms`, `1.3 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def human_rate(rate: float) -> str:
    """`118 tok/s`; one decimal below ten."""
    return f"{rate:,.0f} tok/s" if rate >= 10 else f"{rate:.1f} tok/s"


def human_count(number: int) -> str:
    """A model's size in parameters: `5.7 M`, `1.2 B`."""
    for limit, unit in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K")):
        if number >= limit:
            size = number / limit
            return f"{size:.0f} {unit}" if size >= 100 else f"{size:.1f} {unit}"
    return str(number)
