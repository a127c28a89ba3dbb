"""The compare view's plots as plain values. No Qt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from app.state.comparison.results import Comparison, ComparisonEntry, ids
from app.state.comparison.sweep import Sweep
from app.state.run import Run
from app.views.compare.columns import DISTINCT_2, ENTROPY, LENGTH, REPEATED, SPEED, Column
from app.views.text.token_wording import tokens_told
from app.widgets.plots import PlotAxis, PlotBars, PlotDots, PlotLine, PlotSpec, Titled
from core import words
from core.events import Metrics
from resources.language import tr

BINS = 10
"""Pieces of the histogram: from 0 to 100 %."""
SWEPT = (REPEATED, DISTINCT_2, ENTROPY, LENGTH, SPEED)
"""Figures that are drawn over a swept setting, behind the surprise."""
_COLOURS = ("accent", "refused", "finished", "best", "kept", "danger")


def of_caches(comparison: Comparison) -> list[Titled]:
    """What each cache held, how quick it was, and how far its text is that of the first."""
    return [
        (tr("Peak bytes"), _measured(comparison, lambda m: float(m.cache_peak_bytes), words.size)),
        (tr("Tokens a second"), _measured(comparison, lambda m: m.decode_tokens_per_second or 0.0, words.rate)),
        (tr("Time to first token"), _measured(comparison, lambda m: m.time_to_first_token or 0.0, words.duration)),
        (tr("The same text for"), _agreement(comparison)),
    ]


def of_strategies(comparison: Comparison) -> list[Titled]:
    """How likely the model holds each text, token by token, and how sure it was of the tokens that were taken."""
    return [(tr("Surprise so far, in bits"), _surprise(comparison)),
            (tr("How likely the tokens were"), _probabilities(comparison))]  # fmt: skip


def of_sweep(comparison: Comparison, sweep: Sweep) -> list[Titled]:
    """Figures over the swept setting: the mean over the seeds as a line, each seed's value as a dot."""
    surprise = (tr("Surprise a token, in bits"), _swept(comparison, sweep, _surprise_of, _brief_bits))
    others = [(tr(column.title), _swept(comparison, sweep, _figure_of(column), column.words)) for column in SWEPT]
    return [titled for titled in (surprise, *others) if not titled[1].is_empty]


def _figure_of(column: Column) -> Callable[[ComparisonEntry], float | None]:
    return lambda entry: column.value(entry.figures) if entry.figures is not None else None


def _surprise_of(entry: ComparisonEntry) -> float | None:
    if entry.figures is None or entry.figures.log_probability is None:
        return None
    return -entry.figures.log_probability / math.log(2)


def _brief_bits(value: float) -> str:
    """`1.25 bits`."""
    return tr("{value:.2f} bits").format(value=value)


def _swept(
    comparison: Comparison, sweep: Sweep, value: Callable[[ComparisonEntry], float | None], told: Callable[[float], str]
) -> PlotSpec:
    found = [
        (float(entry.candidate.place), entry.candidate.request.seed, known)
        for entry, _ in comparison.results
        if entry.state == "done"  # one that was stopped would draw the mean to where it stood
        and (known := value(entry)) is not None
        and math.isfinite(known)
    ]
    if not found:
        return PlotSpec()
    by_place: dict[float, list[float]] = {}
    for place, _, known in found:
        by_place.setdefault(place, []).append(known)
    means = tuple((place, sum(values) / len(values)) for place, values in sorted(by_place.items()))
    several = len(sweep.seeds) > 1
    dots = [
        PlotDots(tr("seed {seed}").format(seed=seed), "accent", tuple((p, v) for p, s, v in found if s == seed))
        for seed in sweep.seeds
    ]
    axis = PlotAxis(tr(sweep.parameter.title), labels=sweep.labels)
    line = PlotLine(tr("mean") if several else "", "accent", means)
    return PlotSpec(axis, PlotAxis(words=told), lines=(line,), dots=tuple(d for d in dots if d.points))


def _measured(comparison: Comparison, value: Callable[[Metrics], float], told: Callable[[float], str]) -> PlotSpec:
    """A bar for every result."""
    done = [(entry, run.finished.metrics) for entry, run in comparison.results if run.finished is not None]
    return _sideways([(entry, size, told(size)) for entry, size in ((entry, value(m)) for entry, m in done)], told)


def _agreement(comparison: Comparison) -> PlotSpec:
    """Tokens before the first that differs from the first run's."""
    rows = []
    for entry, run in comparison.results:
        place, whole = comparison.difference(entry), len(ids(run))
        rows.append((entry, float(whole if place is None else place), _all_or(place, whole)))
    return _sideways(rows, _tokens)


def _all_or(place: int | None, whole: int) -> str:
    return tr("all {count:,}").format(count=whole) if place is None else _tokens(place)


def _tokens(count: float) -> str:
    return tokens_told(round(count))


def _sideways(rows: Sequence[tuple[ComparisonEntry, float, str]], told: Callable[[float], str]) -> PlotSpec:
    names = tuple(entry.candidate.short for entry, _, _ in rows)
    tips = tuple(f"{entry.candidate.title}: {figure}" for entry, _, figure in rows)
    bars = PlotBars("", "accent", tuple(value for _, value, _ in rows), tuple(figure for _, _, figure in rows), tips)
    return PlotSpec(
        PlotAxis(words=told, shown=False), PlotAxis(labels=names), bars=(bars,) if rows else (), sideways=True
    )


def _texts(comparison: Comparison) -> Iterator[tuple[str, str, Run]]:
    """(name, colour, run) of every result."""
    for number, (entry, run) in enumerate(comparison.results):
        yield entry.candidate.title, _COLOURS[number % len(_COLOURS)], run


def _surprise(comparison: Comparison) -> PlotSpec:
    """The lower a line, the likelier the model holds that text."""
    lines = []
    for name, colour, run in _texts(comparison):
        bits = accumulate(-token.raw_log_probability / math.log(2) for token in run.sequences[0].tokens)
        points = ((0.0, 0.0), *((float(n), total) for n, total in enumerate(bits, 1) if math.isfinite(total)))
        lines.append(PlotLine(name, colour, points))
    return PlotSpec(PlotAxis(tr("tokens"), whole=True), PlotAxis(tr("bits of surprise"), _bits), lines=tuple(lines))


def _bits(value: float) -> str:
    """`12 bits`."""
    return tr("{value:,.0f} bits").format(value=value)


def _probabilities(comparison: Comparison) -> PlotSpec:
    """A histogram: how many tokens had less than 10 % by the model alone, how many 10 to 20 %, and so on."""
    labels = tuple(f"{n * 100 // BINS}–{(n + 1) * 100 // BINS} %" for n in range(BINS))
    bars = []
    for name, colour, run in _texts(comparison):
        told = [token for token in run.sequences[0].tokens if not math.isnan(token.raw_probability)]
        found = Counter(min(int(token.raw_probability * BINS), BINS - 1) for token in told)
        counts = tuple(float(found[n]) for n in range(BINS))
        tips = tuple(
            tr("{name}: {tokens} with {range}").format(name=name, tokens=_tokens(count), range=label)
            for count, label in zip(counts, labels, strict=True)
        )
        bars.append(PlotBars(name, colour, counts, tips=tips))
    return PlotSpec(PlotAxis(tr("probability"), labels=labels), PlotAxis(tr("tokens"), whole=True), bars=tuple(bars))
