"""Text descriptions of a plot: its shape, one position, and all values as a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from decodescope.app.widgets.plots.plot_spec import PlotAxis, PlotBars, PlotSpec
from decodescope.resources.language import join_names, join_sentences, start_sentence, tr, trn

_FLAT = 1e-9


def describe_plot(figure: PlotSpec) -> str:
    """Describe the shape of a plot in sentences for screen readers."""
    if figure.is_empty:
        return tr("Nothing to show yet.")
    return join_sentences(
        *(tr("{sentence}.").format(sentence=start_sentence(text)) for text in _describe_items(figure))
    )


def describe_parts(figure: PlotSpec) -> list[str]:
    """Return one description per bar, or per curve."""
    if figure.bars:
        return [join_names(describe_position(figure, place).split("\n")) for place in range(figure.count)]
    return [] if figure.is_empty else _describe_items(figure)


def _describe_items(figure: PlotSpec) -> list[str]:
    descriptions = [_describe_bars(figure, bars) for bars in figure.bars]
    if figure.areas:
        name = figure.areas[0].name if len(figure.areas) == 1 else tr("total")
        descriptions.append(_describe_curve(name, figure.xs, figure.totals, figure))
    for line in figure.lines:
        if line.points and line.name:
            xs, ys = zip(*line.points, strict=True)
            descriptions.append(_describe_curve(line.name, xs, ys, figure))
    if figure.dots:
        descriptions.append(tr("dots for {names}").format(names=join_names(dots.name for dots in figure.dots)))
    return descriptions


def describe_position(figure: PlotSpec, position: int) -> str:
    """Return the hover text of a position: the bar's text, or all values there."""
    if figure.bars:
        texts = (_describe_bar(figure, bars, position) for bars in figure.bars if 0 <= position < len(bars.values))
        return "\n".join(text for text in texts if text)
    totals = figure.heights_at(position)
    lines = [f"{name} {figure.y.format_value(height)}" for name, _, height in totals]
    lines += [
        f"{dots.name} {figure.y.format_value(y)}" for dots in figure.dots for x, y in dots.points if x == position
    ]
    axis = figure.x
    head = f"{axis.title} {_label(axis, position)}" if axis.labels else f"{axis.format_value(position)} {axis.title}"
    return "\n".join([head.strip(), *lines]) if lines else ""


def plot_table(figure: PlotSpec) -> list[list[object]]:
    """Return all values as a table with a header: one row per bar or per x."""
    if figure.bars:
        names, axis = [bars.name or figure.y.title or tr("value") for bars in figure.bars], _label_axis(figure)
        rows = [[_label(axis, n), *(_value(bars, n) for bars in figure.bars)] for n in range(figure.count)]
        return [[axis.title or tr("name"), *names], *rows]
    named, dotted = [line for line in figure.lines if line.points], [dict(dots.points) for dots in figure.dots]
    xs = sorted({*figure.xs, *(x for x, _ in figure.points)})
    own = {x: n for n, x in enumerate(figure.xs)}
    return [[figure.x.title or "x", *(area.name for area in figure.areas), *(line.name for line in named),
             *(dots.name for dots in figure.dots)],
            *([_label(figure.x, round(x)) if figure.x.labels else x,
               *(area.values[own[x]] if x in own else "" for area in figure.areas),
               *(_empty_if_none(line.height_at(x)) for line in named),
               *(_empty_if_none(dots.get(x)) for dots in dotted)] for x in xs)]  # fmt: skip


def _label_axis(figure: PlotSpec) -> PlotAxis:
    return figure.y if figure.is_horizontal else figure.x


def _value_axis(figure: PlotSpec) -> PlotAxis:
    return figure.x if figure.is_horizontal else figure.y


def _label(axis: PlotAxis, position: int) -> str:
    return axis.labels[position] if position < len(axis.labels) else str(position + 1)


def _position_name(axis: PlotAxis, position: int) -> str:
    """Return a position's label, with the axis title if the label is only a number."""
    label = _label(axis, position)
    return f"{axis.title} {label}" if axis.title and label.isdecimal() else label


def _value(bars: PlotBars, index: int) -> object:
    return bars.values[index] if index < len(bars.values) else ""


def _empty_if_none(value: float | None) -> object:
    return "" if value is None else value


def _describe_bar(figure: PlotSpec, bars: PlotBars, index: int) -> str:
    if index < len(bars.tooltips):
        return bars.tooltips[index]
    name = f"{bars.name}: " if bars.name else ""
    return f"{name}{_position_name(_label_axis(figure), index)}: {_value_axis(figure).format_value(bars.values[index])}"


def _describe_bars(figure: PlotSpec, bars: PlotBars) -> str:
    heights = _describe_heights(figure, bars)
    return tr("{name}: {figures}").format(name=bars.name, figures=heights) if bars.name else heights


def _describe_heights(figure: PlotSpec, bars: PlotBars) -> str:
    words, values = _value_axis(figure).format_value, bars.values
    if not values:
        return tr("nothing yet")
    if len(values) > 1 and max(values) - min(values) <= _FLAT * max(values):
        return trn("{count} bar of {value}", "{count} bars of {value} each", len(values)).format(
            count=len(values), value=words(values[0])
        )
    axis = _label_axis(figure)
    if len(values) <= 4:
        return join_names(f"{_position_name(axis, n)}: {words(value)}" for n, value in enumerate(values))
    low, high = (values.index(pick(values)) for pick in (min, max))
    return tr("{count} bars; lowest {low} with {least}, highest {high} with {most}").format(
        count=len(values),
        low=_position_name(axis, low),
        least=words(values[low]),
        high=_position_name(axis, high),
        most=words(values[high]),
    )


def _describe_curve(name: str, xs: Sequence[float], ys: Sequence[float], figure: PlotSpec) -> str:
    """Describe the course of a curve in a sentence."""
    y = figure.y.format_value

    def x(value: float) -> str:
        return _label(figure.x, round(value)) if figure.x.labels else figure.x.format_value(value)

    if max(ys) - min(ys) <= _FLAT * max(abs(value) for value in ys):
        return tr("{name} stays at {value}").format(name=name, value=y(ys[0]))
    for sign in (1, -1):
        if all(sign * (b - a) >= 0 for a, b in pairwise(ys)):
            reached = next(n for n, value in enumerate(ys) if value == ys[-1])
            return _monotonic_sentence(sign > 0, reached < len(ys) - 1).format(
                name=name, first=y(ys[0]), start=x(xs[0]), last=y(ys[-1]), place=x(xs[reached]), end=x(xs[-1])
            )
    low, high = (list(ys).index(pick(ys)) for pick in (min, max))
    return tr(
        "{name} goes from {first} at {start} to {last} at {end}; lowest {least} at {low}, highest {most} at {high}"
    ).format(
        name=name,
        first=y(ys[0]),
        start=x(xs[0]),
        last=y(ys[-1]),
        end=x(xs[-1]),
        least=y(ys[low]),
        low=x(xs[low]),
        most=y(ys[high]),
        high=x(xs[high]),
    )


def _monotonic_sentence(rises: bool, stays: bool) -> str:
    """Return the sentence for a curve that only rises or falls, and may reach its end value early."""
    if rises and stays:
        return tr("{name} rises from {first} at {start} to {last} at {place} and stays there to {end}")
    if rises:
        return tr("{name} rises from {first} at {start} to {last} at {place}")
    if stays:
        return tr("{name} falls from {first} at {start} to {last} at {place} and stays there to {end}")
    return tr("{name} falls from {first} at {start} to {last} at {place}")
