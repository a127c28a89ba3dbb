"""Format the labs' figures: decimal bytes as in the papers, whole percents, and durations up to hours."""

from __future__ import annotations

from decodescope.core.checks.arguments import check_number
from decodescope.core.explain import words
from decodescope.core.explain.sentence import SentenceNumber

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def decimal_bytes(count: float) -> SentenceNumber:
    """Format bytes in powers of 1000, such as `31.4 GB`. Raises ParameterError."""
    check_number("count", count)
    for unit in _UNITS:
        if count < 999.5 or unit == _UNITS[-1]:
            break
        count /= 1000
    return SentenceNumber(f"{count:.{0 if unit == 'B' or count >= 100 else 1}f} {unit}")


def percent(fraction: float) -> SentenceNumber:
    """Format a fraction as a percentage, such as `27 %`."""
    return SentenceNumber(words.whole_percent(fraction))


def duration(seconds: float) -> SentenceNumber:
    """Format a duration, such as `24 ms`, `1.3 s` or `2.5 h`."""
    return SentenceNumber(words.duration(seconds) if seconds < 3600 else f"{seconds / 3600:.1f} h")
