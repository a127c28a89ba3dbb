"""Figures as each depth says them: `about 3 in 10`, `31 %`, `0.3142`."""

from __future__ import annotations

import math

from core.explain.sentence import SentenceNumber
from core.explain.words import UNKNOWN, decimal, percent
from resources import depth
from resources.language import mark, tr, trc

_BASES = (10, 100, 1000)
_MIN_COUNT = 0.95
"""Of how many at least a share is told in tenths, in hundredths, in thousandths."""
_ABOUT = mark("about {count} in {base}")
_ALMOST_ALL = 0.995


def share(value: float) -> SentenceNumber:
    """A share as a figure of a sentence."""
    if math.isnan(value):
        return SentenceNumber(UNKNOWN)
    how = {depth.PLAIN: _approximate_fraction, depth.EXACT: format_full}.get(depth.current_depth())
    return SentenceNumber(how(value) if how else percent(value, trc("share", "under"), trc("share", "over")))


def format_share_pair(one: float, other: float) -> tuple[SentenceNumber, SentenceNumber]:
    """Two that are held against each other: where tenths would say the same of both, hundredths may not."""
    first, second = share(one), share(other)
    if first != second or max(one, other) >= _ALMOST_ALL or depth.current_depth() != depth.PLAIN:
        return first, second
    return SentenceNumber(_count_in_base(one, 100)), SentenceNumber(_count_in_base(other, 100))


def format_full(value: float) -> str:
    """Four significant digits, more where they would say 0 or 1 of what is neither."""
    digits = 4
    while digits < 12 and value != float(f"{value:.{digits}g}") in (0.0, 1.0):
        digits += 1
    return f"{value:.{digits}g}".replace("-", "−")


def format_log(value: float) -> str:
    """A log-probability, or an entropy: `−1.158`."""
    return format_full(value + 0.0)  # no minus before a zero


def format_score(value: float) -> str:
    """A score of a search: two digits, four where everything is told."""
    return decimal(value, 4 if depth.current_depth() == depth.EXACT else 2)


def _approximate_fraction(value: float) -> str:
    if value >= 1:
        return tr("10 in 10")
    if value >= _ALMOST_ALL:
        return tr("more than 99 in 100")
    for base in _BASES:
        if value * base >= _MIN_COUNT:
            if round(value * base) < base:
                return _count_in_base(value, base)
    return tr("less than 1 in 1,000") if value > 0 else trc("share", "none")


def _count_in_base(value: float, base: int) -> str:
    return tr(_ABOUT).format(count=math.floor(value * base + 0.5), base=f"{base:,}")
