"""The plots of the compare view as plain values. No Qt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from decodescope.app.state.comparison.candidates import Sweep
from decodescope.app.state.comparison.results import Comparison, ComparisonEntry, token_ids
from decodescope.app.state.comparison.run_metrics import RunMetrics
from decodescope.app.state.run import Run
from decodescope.app.views.text.token_wording import format_token_count
from decodescope.app.widgets.plots import PlotAxis, PlotBars, PlotDots, PlotLine, PlotSpec, TitledPlot
from decodescope.core import measures, words
from decodescope.core.events import Metrics
from decodescope.resources.language import mark, tr

Value = float | int | None


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric shown for every run."""

    title: str
    help: str
    value: Callable[[RunMetrics], Value]
    format: Callable[[float], str]
    width: int
    """Width in pixels at 100 %."""


_percent = words.whole_percent


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimal(value: float) -> str:
    return words.decimal(value)


LENGTH = MetricColumn(mark("Tokens"), mark("Number of generated tokens"), lambda f: f.length, _count, 62)
DISTINCT_1 = MetricColumn(mark("Distinct-1"), mark("Distinct tokens ÷ tokens"), lambda f: f.distinct_1, _percent, 78)
DISTINCT_2 = MetricColumn(
    mark("Distinct-2"), mark("Distinct token pairs ÷ pairs"), lambda f: f.distinct_2, _percent, 78
)
DISTINCT_3 = MetricColumn(
    mark("Distinct-3"), mark("Distinct token triples ÷ triples"), lambda f: f.distinct_3, _percent, 78
)
REPEATED = MetricColumn(
    mark("Repeated"), mark("Fraction of 4-grams that already occurred in the text"), lambda f: f.repeated, _percent, 74
)  # fmt: skip
ENTROPY = MetricColumn(
    mark("Entropy"),
    mark("Mean entropy of the model's distribution per token, in bits"),
    lambda f: f.entropy,
    _decimal,
    68,
)
LOG_P = MetricColumn(
    mark("log p"),
    mark("Mean natural log-probability of the tokens under the model alone"),
    lambda f: f.log_probability,
    _decimal,
    60,
)
SPEED = MetricColumn(
    mark("Speed"), mark("Tokens per second after the first token"), lambda f: f.tokens_per_second, words.rate, 84
)
FIRST = MetricColumn(mark("First token"), mark("Time to the first token"), lambda f: f.first_token, words.duration, 84)
TIME = MetricColumn(mark("Time"), mark("Time of the whole run"), lambda f: f.seconds or None, words.duration, 66)
CACHE = MetricColumn(mark("Cache"), mark("Cache size at the end, in bytes"), lambda f: f.cache_bytes, words.size, 76)
PEAK = MetricColumn(mark("Peak"), mark("Maximum cache size, in bytes"), lambda f: f.cache_peak, words.size, 76)
ACCEPTED = MetricColumn(
    mark("Accepted"), mark("Accepted ÷ verified positions of the drafts"), lambda f: f.acceptance, _percent, 74
)
PASSES = MetricColumn(mark("Passes"), mark("Forward passes of the model"), lambda f: f.passes, _count, 64)

METRIC_COLUMNS = (LENGTH, DISTINCT_1, DISTINCT_2, DISTINCT_3, REPEATED, ENTROPY, LOG_P, SPEED, FIRST, TIME, CACHE, PEAK,
           ACCEPTED, PASSES)  # fmt: skip


def measure_columns() -> tuple[MetricColumn, ...]:
    """Return a column for each measure of a plug-in."""
    return tuple(
        MetricColumn(one.title, one.help, partial(_measured, name), f"{{:,.{one.digits}f}}".format, _MEASURE_WIDTH)
        for name, one in measures.registry.items()
    )


_MEASURE_WIDTH = 130


def _measured(name: str, metrics: RunMetrics) -> float | None:
    return metrics.measures.get(name)


TEXT_COLUMN_PRIORITY = (
    REPEATED,
    LOG_P,
    DISTINCT_2,
    SPEED,
    ENTROPY,
    LENGTH,
    ACCEPTED,
    TIME,
    DISTINCT_1,
    DISTINCT_3,
    PASSES,
    FIRST,
    CACHE,
    PEAK,
)
"""Column priority for text comparisons when there is no room for all."""
CACHE_COLUMN_PRIORITY = (
    PEAK,
    SPEED,
    CACHE,
    FIRST,
    TIME,
    LENGTH,
    LOG_P,
    REPEATED,
    ENTROPY,
    DISTINCT_2,
    DISTINCT_1,
    DISTINCT_3,
    ACCEPTED,
    PASSES,
)


BINS = 10
"""Number of histogram bins from 0 to 100 %."""
SWEEP_COLUMNS = (REPEATED, DISTINCT_2, ENTROPY, LENGTH, SPEED)
"""Metrics plotted over a swept setting, after the surprise."""
_COLOURS = ("accent", "refused", "finished", "best", "kept", "danger")


def cache_plots(comparison: Comparison) -> list[TitledPlot]:
    """Return plots of each cache's size, speed, and agreement with the first one's text."""
    return [
        (tr("Peak bytes"), _metric_bars(comparison, lambda m: float(m.cache_peak_bytes), words.size)),
        (tr("Tokens per second"), _metric_bars(comparison, lambda m: m.decode_tokens_per_second or 0.0, words.rate)),
        (tr("Time to first token"), _metric_bars(comparison, lambda m: m.time_to_first_token or 0.0, words.duration)),
        (tr("Identical text length"), _agreement(comparison)),
    ]


def strategy_plots(comparison: Comparison) -> list[TitledPlot]:
    """Return plots of the cumulative surprise of each text, and of the probabilities of its tokens."""
    return [(tr("Cumulative surprise, in bits"), _surprise(comparison)),
            (tr("Token probabilities"), _probabilities(comparison))]  # fmt: skip


def sweep_plots(comparison: Comparison, sweep: Sweep) -> list[TitledPlot]:
    """Return plots over the swept setting: the mean over the seeds as a line, each seed as a dot."""
    surprise = (tr("Surprise per token, in bits"), _sweep_plot(comparison, sweep, _surprise_of, _brief_bits))
    others = [
        (tr(column.title), _sweep_plot(comparison, sweep, _metric_getter(column), column.format))
        for column in SWEEP_COLUMNS
    ]
    return [titled for titled in (surprise, *others) if not titled[1].is_empty]


def _metric_getter(column: MetricColumn) -> Callable[[ComparisonEntry], float | None]:
    return lambda entry: column.value(entry.metrics) if entry.metrics is not None else None


def _surprise_of(entry: ComparisonEntry) -> float | None:
    if entry.metrics is None or entry.metrics.log_probability is None:
        return None
    return -entry.metrics.log_probability / math.log(2)


def _brief_bits(value: float) -> str:
    """Format bits with two decimals: `1.25 bits`."""
    return tr("{value:.2f} bits").format(value=value)


def _sweep_plot(
    comparison: Comparison,
    sweep: Sweep,
    value: Callable[[ComparisonEntry], float | None],
    format_value: Callable[[float], str],
) -> PlotSpec:
    points = [
        (float(entry.candidate.index), entry.candidate.request.seed, known)
        for entry, _ in comparison.results
        if entry.state == "done"  # a stopped run would distort the mean
        and (known := value(entry)) is not None
        and math.isfinite(known)
    ]
    if not points:
        return PlotSpec()
    by_place: dict[float, list[float]] = {}
    for place, _, known in points:
        by_place.setdefault(place, []).append(known)
    means = tuple((place, sum(values) / len(values)) for place, values in sorted(by_place.items()))
    several = len(sweep.seeds) > 1
    dots = [
        PlotDots(tr("seed {seed}").format(seed=seed), "accent", tuple((p, v) for p, s, v in points if s == seed))
        for seed in sweep.seeds
    ]
    axis = PlotAxis(tr(sweep.parameter.title), labels=sweep.labels)
    line = PlotLine(tr("mean") if several else "", "accent", means)
    return PlotSpec(axis, PlotAxis(format_value=format_value), lines=(line,), dots=tuple(d for d in dots if d.points))


def _metric_bars(
    comparison: Comparison, value: Callable[[Metrics], float], format_value: Callable[[float], str]
) -> PlotSpec:
    """Return one horizontal bar per result."""
    done = [(entry, run.finished.metrics) for entry, run in comparison.results if run.finished is not None]
    return _horizontal_bars(
        [(entry, size, format_value(size)) for entry, size in ((entry, value(m)) for entry, m in done)], format_value
    )


def _agreement(comparison: Comparison) -> PlotSpec:
    """Return the number of tokens before the first difference from the first run, per result."""
    rows = []
    for entry, run in comparison.results:
        first_difference, length = comparison.first_difference(entry), len(token_ids(run))
        rows.append(
            (
                entry,
                float(length if first_difference is None else first_difference),
                _agreement_text(first_difference, length),
            )
        )
    return _horizontal_bars(rows, _tokens)


def _agreement_text(first_difference: int | None, length: int) -> str:
    return tr("all {count:,}").format(count=length) if first_difference is None else _tokens(first_difference)


def _tokens(count: float) -> str:
    return format_token_count(round(count))


def _horizontal_bars(
    rows: Sequence[tuple[ComparisonEntry, float, str]], format_value: Callable[[float], str]
) -> PlotSpec:
    names = tuple(entry.candidate.short for entry, _, _ in rows)
    tips = tuple(f"{entry.candidate.title}: {figure}" for entry, _, figure in rows)
    bars = PlotBars("", "accent", tuple(value for _, value, _ in rows), tuple(figure for _, _, figure in rows), tips)
    return PlotSpec(
        PlotAxis(format_value=format_value, is_visible=False),
        PlotAxis(labels=names),
        bars=(bars,) if rows else (),
        is_horizontal=True,
    )


def _named_results(comparison: Comparison) -> Iterator[tuple[str, str, Run]]:
    """Yield (name, colour, run) for every result."""
    for number, (entry, run) in enumerate(comparison.results):
        yield entry.candidate.title, _COLOURS[number % len(_COLOURS)], run


def _surprise(comparison: Comparison) -> PlotSpec:
    """Return the cumulative surprise of each text; lower lines are likelier under the model."""
    lines = []
    for name, colour, run in _named_results(comparison):
        bits = accumulate(-token.raw_log_probability / math.log(2) for token in run.sequences[0].tokens)
        points = ((0.0, 0.0), *((float(n), total) for n, total in enumerate(bits, 1) if math.isfinite(total)))
        lines.append(PlotLine(name, colour, points))
    return PlotSpec(
        PlotAxis(tr("tokens"), integers_only=True), PlotAxis(tr("bits of surprise"), _bits), lines=tuple(lines)
    )


def _bits(value: float) -> str:
    """Format whole bits: `12 bits`."""
    return tr("{value:,.0f} bits").format(value=value)


def _probabilities(comparison: Comparison) -> PlotSpec:
    """Return a histogram of the tokens' probabilities under the model alone, in steps of 10 %."""
    labels = tuple(words.percent_text(f"{n * 100 // BINS}–{(n + 1) * 100 // BINS}") for n in range(BINS))
    bars = []
    for name, colour, run in _named_results(comparison):
        known = [token for token in run.sequences[0].tokens if not math.isnan(token.raw_probability)]
        found = Counter(min(int(token.raw_probability * BINS), BINS - 1) for token in known)
        counts = tuple(float(found[n]) for n in range(BINS))
        tips = tuple(
            tr("{name}: {tokens} with {range}").format(name=name, tokens=_tokens(count), range=label)
            for count, label in zip(counts, labels, strict=True)
        )
        bars.append(PlotBars(name, colour, counts, tooltips=tips))
    return PlotSpec(
        PlotAxis(tr("probability"), labels=labels), PlotAxis(tr("tokens"), integers_only=True), bars=tuple(bars)
    )
