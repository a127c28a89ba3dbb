"""What a plot shows: plain values with their names, the words for them, and colours by their names in the theme."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from resources.language import mark

Units = tuple[tuple[float, str], ...]
BYTES: Units = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, mark("bytes")))
PLAIN: Units = ((1, ""),)
HEADROOM = 1.04
"""Of the height above the largest value."""


def format_number(value: float) -> str:
    """`1,234`, `0.25`: as many digits as a reader needs."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """One direction of a plot."""

    title: str = ""
    format_value: Callable[[float], str] = format_number
    """How one of its values is said."""
    units: Units = PLAIN
    """What it may count in, largest first."""
    labels: tuple[str, ...] = ()
    """Names of the places 0, 1, 2 …, where it is no scale of numbers."""
    integers_only: bool = False
    """Only whole numbers are marked on it."""
    is_visible: bool = True

    def unit(self, top: float) -> tuple[float, str]:
        """(size, name) of what it counts in when `top` is its end."""
        return next((unit for unit in self.units if top >= unit[0]), self.units[-1])


@dataclass(frozen=True, slots=True)
class PlotArea:
    """One of the areas that lie on each other, a value for every x of the figure."""

    name: str
    colour: str
    values: tuple[float, ...]
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line, named at its right end."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    dashes: tuple[float, ...] = ()
    """Lengths of dash and gap in pen widths; () for a solid line."""
    shows_on_hover: bool = True
    """Whether its value is told with the place under the mouse."""

    def height_at(self, x: float) -> float | None:
        """Its height at `x`; None where it is not."""
        return interpolate_height(self.points, x)

    def between(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        """Its points from `low` to `high`, with those where it enters and leaves."""
        inner = {x for x, _ in self.points if low <= x <= high} | {low, high}
        return tuple((x, y) for x in sorted(inner) if (y := self.height_at(x)) is not None)


@dataclass(frozen=True, slots=True)
class PlotDots:
    """Single values that no line joins."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    """Beside bars on their side: (value, places from the lowest bar)."""
    shape: str = "dot"
    """dot, stroke or diamond."""

    def between(self, low: float, high: float) -> tuple[tuple[float, float], ...]:
        """Those from `low` to `high`."""
        return tuple((x, y) for x, y in self.points if low <= x <= high)


@dataclass(frozen=True, slots=True)
class PlotBars:
    """A bar for each label of the axis that they stand on; several sets stand beside each other."""

    name: str
    colour: str
    values: tuple[float, ...]
    figures: tuple[str, ...] = ()
    """Written at the end of each bar, where there is room for them."""
    tooltips: tuple[str, ...] = ()
    """What is said of each, where the names do not say it all."""
    marked: int = -1
    """The one that stands out."""


@dataclass(frozen=True)
class PlotSpec:
    """A whole plot. Heights begin at 0, or at the lowest value below it; bars lie on their side where `is_horizontal`."""

    x: PlotAxis = PlotAxis()
    y: PlotAxis = PlotAxis()
    xs: tuple[float, ...] = ()
    """Places of the areas' values."""
    areas: tuple[PlotArea, ...] = ()
    lines: tuple[PlotLine, ...] = ()
    dots: tuple[PlotDots, ...] = ()
    bars: tuple[PlotBars, ...] = ()
    right: float = 0.0
    """Where the x axis ends; 0 for where the values do."""
    top: float = 0.0
    """The height that fills it; 0 for the largest value and a little more."""
    is_horizontal: bool = False
    is_stacked: bool = False
    """Sets of bars stand on each other, not beside."""

    @cached_property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (self.xs or self.points or self.count)

    @cached_property
    def points(self) -> list[tuple[float, float]]:
        """Of all lines and dots."""
        lines = [point for line in self.lines for point in line.points]
        return lines + [point for dots in self.dots for point in dots.points]

    @cached_property
    def count(self) -> int:
        """Places at which bars stand."""
        return max((len(bars.values) for bars in self.bars), default=0)

    @cached_property
    def highest(self) -> float:
        """The largest value there is."""
        points = (y for _, y in self.points)
        bars = [bars.values for bars in self.bars]
        ends = map(sum, zip(*bars, strict=True)) if self.is_stacked else (value for values in bars for value in values)
        return max(*self.totals, *points, *ends, 0.0, 0.0)

    @cached_property
    def lowest(self) -> float:
        """Where the heights begin: at 0, or below it where lines and dots do."""
        return min(0.0, *(y for _, y in self.points), 0.0) * HEADROOM

    @cached_property
    def height(self) -> float:
        """What the plot's height stands for."""
        return self.top or (self.highest or 1.0) * HEADROOM

    def unit(self) -> tuple[float, str]:
        """(size, name) of what the upright axis counts in."""
        return self.y.unit(self.height)

    @cached_property
    def end(self) -> float:
        """Where the x axis ends."""
        ends = [line.points[-1][0] for line in self.lines if line.points]
        return self.right or max([*self.xs[-1:], *ends, *(x for dots in self.dots for x, _ in dots.points), 1.0])

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """How high the areas reach together, at each x."""
        return tuple(sum(values) for values in zip(*(area.values for area in self.areas), strict=True))

    def between(self, low: float, high: float) -> PlotSpec:
        """Curves only from `low` to `high`; bars, axes and heights as they are."""
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
        """(name, colour, height) of everything that is told at `x`; areas as high as they are stacked."""
        heights: list[tuple[str, str, float]] = []
        total = [0.0] * len(self.xs)
        for area in self.areas:
            total = [low + value for low, value in zip(total, area.values, strict=True)]
            if (height := interpolate_height(tuple(zip(self.xs, total, strict=True)), x)) is not None:
                heights.append((area.name, area.colour, height))
        line_heights = ((line, line.height_at(x)) for line in self.lines if line.shows_on_hover)
        return heights + [(line.name, line.colour, height) for line, height in line_heights if height is not None]


TitledPlot = tuple[str, PlotSpec]
"""A plot under its title."""


def interpolate_height(points: Sequence[tuple[float, float]], x: float) -> float | None:
    """Height at `x` on the straight lines through `points`; None before the first and behind the last."""
    if not points or not points[0][0] <= x <= points[-1][0]:
        return None
    after = bisect_right(points, x, key=lambda point: point[0])
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
