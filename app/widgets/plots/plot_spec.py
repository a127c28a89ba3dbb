"""Description of a plot: plain values with names, formats and theme colour names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from decodescope.resources.language import mark

Units = tuple[tuple[float, str], ...]
BYTES: Units = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, mark("bytes")))
PLAIN: Units = ((1, ""),)
HEADROOM = 1.04
"""Factor of the axis height above the largest value."""


def format_number(value: float) -> str:
    """Return a number with as many digits as needed: `1,234`, `0.25`."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """One axis of a plot."""

    title: str = ""
    format_value: Callable[[float], str] = format_number
    """Formats one of its values."""
    units: Units = PLAIN
    """Possible units, largest first."""
    labels: tuple[str, ...] = ()
    """Labels of the positions 0, 1, 2 …, if the axis is not numeric."""
    integers_only: bool = False
    """Whether only integers get ticks."""
    is_visible: bool = True

    def unit(self, top: float) -> tuple[float, str]:
        """Return (size, name) of the unit for an axis that ends at `top`."""
        return next((unit for unit in self.units if top >= unit[0]), self.units[-1])


@dataclass(frozen=True, slots=True)
class PlotArea:
    """One of the stacked areas, with one value per x of the plot."""

    name: str
    colour: str
    values: tuple[float, ...]
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line, labelled at its right end."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    dashes: tuple[float, ...] = ()
    """Lengths of dash and gap in pen widths; () for a solid line."""
    shows_on_hover: bool = True
    """Whether its value is included in the hover text."""

    def height_at(self, x: float) -> float | None:
        """Return the height at `x`; None outside the line."""
        return interpolate_height(self.points, x)

    def between(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        """Return the points from `low` to `high`, including interpolated end points."""
        inner = {x for x, _ in self.points if low <= x <= high} | {low, high}
        return tuple((x, y) for x in sorted(inner) if (y := self.height_at(x)) is not None)


@dataclass(frozen=True, slots=True)
class PlotDots:
    """Single values without a connecting line."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    """For horizontal bars: (value, index from the lowest bar)."""
    shape: str = "dot"
    """"dot", "stroke" or "diamond"."""

    def between(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        """Return the points from `low` to `high`."""
        return tuple((x, y) for x, y in self.points if low <= x <= high)


@dataclass(frozen=True, slots=True)
class PlotBars:
    """One bar per label of the axis. Several sets are placed side by side."""

    name: str
    colour: str
    values: tuple[float, ...]
    figures: tuple[str, ...] = ()
    """Text at the end of each bar, if there is room."""
    tooltips: tuple[str, ...] = ()
    """Hover text of each bar, if the labels are not enough."""
    marked: int = -1
    """Index of the highlighted bar."""


@dataclass(frozen=True)
class PlotSpec:
    """A complete plot. Heights start at 0, or at the lowest negative value. `is_horizontal`: bars lie on their side."""

    x: PlotAxis = PlotAxis()
    y: PlotAxis = PlotAxis()
    xs: tuple[float, ...] = ()
    """x values of the areas."""
    areas: tuple[PlotArea, ...] = ()
    lines: tuple[PlotLine, ...] = ()
    dots: tuple[PlotDots, ...] = ()
    bars: tuple[PlotBars, ...] = ()
    right: float = 0.0
    """End of the x axis; 0 for the end of the values."""
    top: float = 0.0
    """Upper end of the y axis; 0 for the largest value plus headroom."""
    is_horizontal: bool = False
    is_stacked: bool = False
    """Whether sets of bars are stacked instead of placed side by side."""

    @cached_property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (self.xs or self.points or self.count)

    @cached_property
    def points(self) -> list[tuple[float, float]]:
        """Points of all lines and dots."""
        lines = [point for line in self.lines for point in line.points]
        return lines + [point for dots in self.dots for point in dots.points]

    @cached_property
    def count(self) -> int:
        """Number of bar positions."""
        return max((len(bars.values) for bars in self.bars), default=0)

    @cached_property
    def highest(self) -> float:
        """The largest value."""
        points = (y for _, y in self.points)
        bars = [bars.values for bars in self.bars]
        ends = map(sum, zip(*bars, strict=True)) if self.is_stacked else (value for values in bars for value in values)
        return max(*self.totals, *points, *ends, 0.0, 0.0)

    @cached_property
    def lowest(self) -> float:
        """Lower end of the y axis: 0, or below if lines or dots are negative."""
        return min(0.0, *(y for _, y in self.points), 0.0) * HEADROOM

    @cached_property
    def height(self) -> float:
        """Upper end of the y axis."""
        return self.top or (self.highest or 1.0) * HEADROOM

    def unit(self) -> tuple[float, str]:
        """Return (size, name) of the unit of the y axis."""
        return self.y.unit(self.height)

    @cached_property
    def end(self) -> float:
        """End of the x axis."""
        ends = [line.points[-1][0] for line in self.lines if line.points]
        return self.right or max([*self.xs[-1:], *ends, *(x for dots in self.dots for x, _ in dots.points), 1.0])

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """Total height of the areas at each x."""
        return tuple(sum(values) for values in zip(*(area.values for area in self.areas), strict=True))

    def between(self, low: float, high: float) -> PlotSpec:
        """Return the plot with curves limited to `low` … `high`; bars, axes and heights are unchanged."""
        xs = tuple(sorted({low, high, *(x for x in self.xs if low <= x <= high)}))
        xs = tuple(x for x in xs if self.xs and self.xs[0] <= x <= self.xs[-1])
        areas = tuple(
            replace(
                area,
                values=tuple(interpolate_height(tuple(zip(self.xs, area.values, strict=True)), x) or 0.0 for x in xs),
            )
            for area in self.areas
        )
        lines = tuple(replace(line, points=line.between(low, high)) for line in self.lines)
        dots = tuple(replace(some, points=some.between(low, high)) for some in self.dots)
        return replace(self, xs=xs, areas=areas, lines=lines, dots=dots, right=self.end, top=self.height)

    def heights_at(self, x: float) -> list[tuple[str, str, float]]:
        """Return (name, colour, height) of everything shown at `x`, with areas stacked."""
        heights: list[tuple[str, str, float]] = []
        total = [0.0] * len(self.xs)
        for area in self.areas:
            total = [low + value for low, value in zip(total, area.values, strict=True)]
            if (height := interpolate_height(tuple(zip(self.xs, total, strict=True)), x)) is not None:
                heights.append((area.name, area.colour, height))
        line_heights = ((line, line.height_at(x)) for line in self.lines if line.shows_on_hover)
        return heights + [(line.name, line.colour, height) for line, height in line_heights if height is not None]


TitledPlot = tuple[str, PlotSpec]
"""A title and its plot."""


def interpolate_height(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """Interpolate linearly between `points` at `x`; None outside them."""
    if not points or not points[0][0] <= x <= points[-1][0]:
        return None
    after = bisect_right(points, x, key=lambda point: point[0])
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
