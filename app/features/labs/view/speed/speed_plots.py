"""The measurements for export: a table of all figures, and the sentences as text."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from decodescope.app.features.labs.state import SpeedResults
from decodescope.app.views.base import Excerpt, Table
from decodescope.app.widgets.plots import PlotAxis, PlotBars, PlotDots, PlotLine, PlotSpec, TitledPlot
from decodescope.core import words
from decodescope.core.labs import speed
from decodescope.resources.language import join_sentences, tr

_MAX_LIMIT_RATIO = 1.5
"""Maximum ratio of a limit to the fastest row; more distant limits are not drawn, because the bars would be too short.
"""
_WITH_MEMORY: tuple[speed.Way, ...] = ("weights", "parallel", "offload")
"""Techniques whose rows differ in memory."""


def technique_plots(technique: speed.Way, measured_rows: Sequence[speed.RowMeasurement]) -> list[TitledPlot]:
    """Return the plots of a technique; none if nothing was measured."""
    if not measured_rows:
        return []
    if technique == "batch":
        return [(tr("Tokens per second"), _batch_plot(measured_rows)), (tr("Memory"), _memory_plot(measured_rows))]
    shown = [(tr("Tokens per second"), _speed_plot(measured_rows))]
    return shown + ([(tr("Memory"), _memory_plot(measured_rows))] if technique in _WITH_MEMORY else [])


def row_sentence(measured: speed.RowMeasurement) -> str:
    """Return a row in words: speed, fraction of the limit, memory."""
    row = speed.row_title(measured.row)
    speed_text = tr("{row}: {speed} tokens/s").format(row=row, speed=speed.speed_words(measured.speed))
    parts = [speed_text, _limit_text(measured)]
    if measured.base:
        parts.append(tr("{ratio} × the baseline").format(ratio=speed.times(measured.ratio)))
    if measured.per_pass:
        parts.append(tr("{count:.1f} tokens per pass").format(count=measured.per_pass))
    if measured.predicted:
        parts.append(tr("predicted: {speed} tokens/s").format(speed=speed.speed_words(measured.predicted)))
    return tr(", ").join([*parts, words.size(measured.bytes)])


def legend_text(has_predictions: bool) -> str:
    """Return the explanation of the strokes, and of the diamonds if there are any."""
    return join_sentences(
        tr("The line next to a bar is its limit: the speed if reading the weights took all the time."),
        tr("Small weights stay in the processor's cache between passes, so some rows may exceed their limit."),
        tr("The diamond is the prediction.") if has_predictions else "",
    )


def _limit_text(measured: speed.RowMeasurement) -> str:
    return tr("{share} of its limit, {limit}").format(
        share=words.whole_percent(measured.speed / measured.limit), limit=speed.speed_words(measured.limit)
    )


def _speed_plot(measured_rows: Sequence[speed.RowMeasurement]) -> PlotSpec:
    """Return one bar per row, the first on top."""
    best = max(max(one.speed for one in measured_rows), *(one.predicted or 0.0 for one in measured_rows))
    marks = {tr("limit"): lambda one: one.limit, tr("predicted"): lambda one: one.predicted or 0.0}
    dots = [_limit_marks(name, value, measured_rows, best * _MAX_LIMIT_RATIO) for name, value in marks.items()]
    top = max([best, *(x for some in dots for x, _ in some.points)])
    tips = tuple(map(row_sentence, measured_rows))
    figures = tuple(_bar_label(one, best * _MAX_LIMIT_RATIO) for one in measured_rows)
    bars = PlotBars("", "accent", tuple(one.speed for one in measured_rows), figures, tips)
    return PlotSpec(
        PlotAxis(format_value=speed.speed_words, is_visible=False),
        PlotAxis(labels=tuple(speed.row_title(one.row) for one in measured_rows)),
        dots=tuple(some for some in dots if some.points),
        bars=(bars,),
        top=top * 1.02,
        is_horizontal=True,
    )


def _limit_marks(
    name: str,
    value: Callable[[speed.RowMeasurement], float],
    measured_rows: Sequence[speed.RowMeasurement],
    max_value: float,
) -> PlotDots:
    places = ((value(one), float(len(measured_rows) - 1 - place)) for place, one in enumerate(measured_rows))
    shape, colour = ("stroke", "refused") if name == tr("limit") else ("diamond", "finished")
    return PlotDots(name, colour, tuple(place for place in places if 0 < place[0] <= max_value), shape)


def _bar_label(measured: speed.RowMeasurement, max_value: float) -> str:
    """Return the label at the end of a bar, including the limit if no stroke shows it."""
    parts = [speed.speed_words(measured.speed), f"{speed.times(measured.ratio)} ×" if measured.base else ""]
    if measured.limit > max_value:
        parts.append(tr("{share} of its limit").format(share=words.whole_percent(measured.speed / measured.limit)))
    return " · ".join(filter(None, parts))


def _batch_plot(measured_rows: Sequence[speed.RowMeasurement]) -> PlotSpec:
    """Return curves over the batch size: total speed, speed per sequence, and the limit as far as visible."""
    best = max(one.speed for one in measured_rows)
    limit = _clip_rising_line(best * _MAX_LIMIT_RATIO, [(float(n), one.limit) for n, one in enumerate(measured_rows)])
    lines = [
        PlotLine(
            tr("all sequences together"), "accent", tuple((float(n), one.speed) for n, one in enumerate(measured_rows))
        ),
        PlotLine(tr("each sequence"), "finished", tuple((float(n), one.each) for n, one in enumerate(measured_rows))),
    ]
    if limit:
        lines.append(PlotLine(tr("limit"), "refused", limit, (4.0, 3.0)))
    axis = PlotAxis(tr("number of sequences"), labels=tuple(one.row.name for one in measured_rows))
    return PlotSpec(axis, PlotAxis(format_value=speed.speed_words), lines=tuple(lines))


def _clip_rising_line(max_value: float, points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Clip a rising line at `max_value`; empty if it starts above."""
    seen = [point for point in points if point[1] <= max_value]
    if seen and len(seen) < len(points):
        (x0, y0), (x1, y1) = points[len(seen) - 1 : len(seen) + 1]
        seen.append((x0 + (x1 - x0) * (max_value - y0) / (y1 - y0), max_value))
    return tuple(seen)


def _memory_plot(measured_rows: Sequence[speed.RowMeasurement]) -> PlotSpec:
    """Return one memory bar per row."""
    sizes = tuple(words.size(one.bytes) for one in measured_rows)
    names = tuple(speed.row_title(one.row) for one in measured_rows)
    bars = PlotBars("", "kept", tuple(float(one.bytes) for one in measured_rows), sizes)
    return PlotSpec(
        PlotAxis(format_value=lambda value: words.size(round(value)), is_visible=False),
        PlotAxis(labels=names),
        bars=(bars,),
        is_horizontal=True,
    )


def speed_table(speeds: SpeedResults) -> Table:
    """Return a header and a row for each measured or skipped item; empty if there is none."""
    if not (speeds.measured or speeds.skipped):
        return ()
    head = ["way", "row", "tokens_per_second", "lowest", "highest", "texts", "per_text", "ratio", "limit", "predicted",
            "tokens_per_pass", "bytes", "same_text", "left_out"]  # fmt: skip
    lines = [_table_row(speeds, row) for row in (speeds.rows or (*speeds.measured, *speeds.skipped))]
    return [head, *(line for line in lines if line is not None)]


def speed_excerpt(speeds: SpeedResults) -> Excerpt | None:
    """Return the sentences by technique, each with its rows; None if there is no result."""
    if speeds.is_empty:
        return None
    plain, rich = [], []
    if speeds.ground is not None:
        ground = str(speed.explain_reference(speeds.ground))
        plain.append(ground)
        rich.append(f"<p>{html.escape(ground)}</p>")
    for way in speeds.ways:
        title, lines = tr(speed.TITLES[way]), _technique_lines(speeds, way)
        plain.append("\n".join([title, *lines]))
        rich.append(f"<h3>{html.escape(title)}</h3><p>{'<br>'.join(map(html.escape, lines))}</p>")
    if speeds.error is not None:
        plain.append(join_sentences(speeds.error.cause, speeds.error.remedy))
        rich.append(f"<p>{html.escape(plain[-1])}</p>")
    return Excerpt("\n\n".join(plain), "".join(rich))


def _technique_lines(speeds: SpeedResults, technique: speed.Way) -> list[str]:
    found = speeds.measurements_of(technique)
    sentence = [str(speed.explain_way(technique, found))] if len(found) > 1 else []
    left = [f"{speed.row_title(row)}: {reason}" for row, reason in speeds.skipped_of(technique)]
    return [*sentence, *map(row_sentence, found), *left]


def _table_row(speeds: SpeedResults, row: speed.Row) -> list[object] | None:
    if row in speeds.skipped:
        return [row.way, row.name, *[None] * 11, speeds.skipped[row]]
    one = speeds.measured.get(row)
    if one is None:
        return None
    return [
        row.way, row.name, one.speed, min(one.speeds), max(one.speeds), one.texts, one.each, one.ratio, one.limit,
        one.predicted, one.per_pass, one.bytes, one.same, None,
    ]  # fmt: skip
