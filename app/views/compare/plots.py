"""The compare view's plots as plain values. No Qt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from app.state.run import Run
from app.views.compare.comparison import Comparison, Entry, ids
from app.widgets.plots import Axis, Bars, Figure, Line
from core import words
from core.events import Metrics

BINS = 10
"""Pieces of the histogram: from 0 to 100 %."""
_COLOURS = ("accent", "refused", "finished", "best", "kept", "danger")
Titled = tuple[str, Figure]


def of_caches(comparison: Comparison) -> list[Titled]:
    """What each cache held, how quick it was, and how far its text is that of the first."""
    return [
        ("Peak bytes", _measured(comparison, lambda m: float(m.cache_peak_bytes), words.size)),
        ("Tokens a second", _measured(comparison, lambda m: m.decode_tokens_per_second or 0.0, words.rate)),
        ("Time to first token", _measured(comparison, lambda m: m.time_to_first_token or 0.0, words.duration)),
        ("The same text for", _agreement(comparison)),
    ]


def of_strategies(comparison: Comparison) -> list[Titled]:
    """How likely the model holds each text, token by token, and how sure it was of the tokens that were taken."""
    return [("Surprise so far, in bits", _surprise(comparison)),
            ("How likely the tokens were", _probabilities(comparison))]  # fmt: skip


def _measured(comparison: Comparison, value: Callable[[Metrics], float], told: Callable[[float], str]) -> Figure:
    """A bar for every result."""
    done = [(entry, run.finished.metrics) for entry, run in comparison.runs if run.finished is not None]
    return _sideways([(entry, size, told(size)) for entry, size in ((entry, value(m)) for entry, m in done)], told)


def _agreement(comparison: Comparison) -> Figure:
    """Tokens before the first that differs from the first run's."""
    rows = []
    for entry, run in comparison.runs:
        place, whole = comparison.difference(entry), len(ids(run))
        rows.append((entry, float(whole if place is None else place), _all_or(place, whole)))
    return _sideways(rows, _tokens)


def _all_or(place: int | None, whole: int) -> str:
    return f"all {whole:,}" if place is None else _tokens(place)


def _tokens(count: float) -> str:
    return words.count(round(count), "token")


def _sideways(rows: Sequence[tuple[Entry, float, str]], told: Callable[[float], str]) -> Figure:
    names = tuple(entry.candidate.short for entry, _, _ in rows)
    tips = tuple(f"{entry.candidate.title}: {figure}" for entry, _, figure in rows)
    bars = Bars("", "accent", tuple(value for _, value, _ in rows), tuple(figure for _, _, figure in rows), tips)
    return Figure(Axis(words=told, shown=False), Axis(labels=names), bars=(bars,) if rows else (), sideways=True)


def _texts(comparison: Comparison) -> Iterator[tuple[str, str, Run]]:
    """(name, colour, run) of every result."""
    for number, (entry, run) in enumerate(comparison.runs):
        yield entry.candidate.title, _COLOURS[number % len(_COLOURS)], run


def _surprise(comparison: Comparison) -> Figure:
    """The lower a line, the likelier the model holds that text."""
    lines = []
    for name, colour, run in _texts(comparison):
        bits = accumulate(-token.raw_log_probability / math.log(2) for token in run.sequences[0].tokens)
        points = ((0.0, 0.0), *((float(n), total) for n, total in enumerate(bits, 1) if math.isfinite(total)))
        lines.append(Line(name, colour, points))
    return Figure(Axis("tokens", whole=True), Axis("bits of surprise", _bits), lines=tuple(lines))


def _bits(value: float) -> str:
    """`12 bits`."""
    return f"{value:,.0f} bits"


def _probabilities(comparison: Comparison) -> Figure:
    """A histogram: how many tokens had less than 10 % by the model alone, how many 10 to 20 %, and so on."""
    labels = tuple(f"{n * 100 // BINS}–{(n + 1) * 100 // BINS} %" for n in range(BINS))
    bars = []
    for name, colour, run in _texts(comparison):
        found = Counter(min(int(token.raw_probability * BINS), BINS - 1) for token in run.sequences[0].tokens)
        counts = tuple(float(found[n]) for n in range(BINS))
        tips = tuple(f"{name}: {_tokens(count)} with {label}" for count, label in zip(counts, labels, strict=True))
        bars.append(Bars(name, colour, counts, tips=tips))
    return Figure(Axis("probability", labels=labels), Axis("tokens", whole=True), bars=tuple(bars))
