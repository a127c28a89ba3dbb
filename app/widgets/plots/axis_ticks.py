"""Where the marks of an axis stand."""

from __future__ import annotations

import math

from app.widgets.plots.plot_spec import PLAIN, PlotAxis


def round_step(span: float, max_steps: int, integers_only: bool = False) -> float:
    """The smallest of 1, 2, 5 times a power of ten that cuts `span` into at most `max_steps` pieces."""
    min_step = span / max(max_steps, 1)
    power = 10 ** math.floor(math.log10(min_step)) if min_step > 0 else 1
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= min_step * (1 - 1e-9))
    return max(1.0, step) if integers_only else step


def tick_values(axis: PlotAxis, low: float, high: float, top: float, max_ticks: int) -> list[float]:
    """At most `max_ticks` and one more values between `low` and `high`; `top` is the axis' own end, which sets the unit."""
    if axis.labels:
        every = max(1, math.ceil((high - low) / max(max_ticks, 1)))
        return [float(n) for n in range(0, len(axis.labels), every) if low <= n <= high]
    size, _ = axis.unit(top)
    step = round_step((high - low) / size, max_ticks, axis.integers_only) * size
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def tick_text(axis: PlotAxis, value: float, top: float) -> str:
    """What stands beside a mark."""
    if axis.labels:
        position = round(value)
        return axis.labels[position] if 0 <= position < len(axis.labels) else ""
    shown = value / axis.unit(top)[0]
    return axis.format_value(value) if axis.units == PLAIN else f"{shown:g}"
