"""The memory view's plots as plain values: bytes over the run, bytes by layer. No Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.state.cache_history import CacheHistory, CachePart, CachePoint
from app.views.memory.report import part_name
from app.widgets.plots import BYTES, PlotArea, PlotAxis, PlotBars, PlotLine, PlotSpec
from core import words
from resources.language import tr

PART_COLOURS = {"keys": "kept", "values": "finished", "scales": "best", "residual": "refused", "self": "kept",
                "cross": "finished", "state": "best"}  # fmt: skip


def bytes_over_run(history: CacheHistory, cursor: int, right: int) -> PlotSpec:
    """What was held up to `cursor`, in parts that lie on each other, below what was foretold up to `right`."""
    curve = history.curve(cursor)
    return PlotSpec(
        x=PlotAxis(tr("tokens written"), integers_only=True),
        y=PlotAxis(tr("bytes held"), words.size, BYTES),
        xs=tuple(float(point.x) for point in curve),
        areas=tuple(_area(part, history.parts, curve) for part in history.parts),
        lines=tuple(_forecast_lines(history, max(right, cursor))),
        right=float(max(right, cursor)),
    )


def part_colour(part: CachePart) -> str:
    """The theme's colour for it."""
    return PART_COLOURS.get(part[1], "accent")


def _area(part: CachePart, parts: list[CachePart], curve: Sequence[CachePoint]) -> PlotArea:
    values = tuple(float(dict(point.parts).get(part, 0)) for point in curve)
    return PlotArea(part_name(part, parts), part_colour(part), values, hatched=part[0] == "disk")


def _forecast_lines(history: CacheHistory, right: int) -> Iterator[PlotLine]:
    predicted, dynamic = history.lines(right)
    if dynamic and not history.forecast.is_plain:
        yield PlotLine(tr("dynamic would be"), "muted", tuple(dynamic), (5.0, 4.0))
    if predicted:
        yield PlotLine(tr("predicted"), "warning", tuple(predicted), (1.5, 3.0))


def bytes_by_layer(history: CacheHistory, point: CachePoint) -> PlotSpec:
    """A bar for each layer that holds anything."""
    halves = any(part in ("self", "cross") for _, part in history.parts)
    half = len(point.layers) // 2
    labels, sizes, tips = [], [], []
    for number, size in enumerate(point.layers):
        if not size:  # an encoder–decoder's cache has places for layers that its decoder lacks
            continue
        place = number % half + 1 if halves and half else number + 1
        template = (tr("self {place}") if number < half else tr("cross {place}")) if halves else tr("layer {place}")
        name = template.format(place=place)
        labels.append(name if halves else str(place))
        sizes.append(float(size))
        tip = tr("{layer}: {bytes:,} bytes ({size})").format(layer=name, bytes=size, size=words.size(size))
        tips.append(tip)
    return PlotSpec(
        x=PlotAxis(tr("layer"), labels=tuple(labels)),
        y=PlotAxis(tr("bytes"), words.size, BYTES, is_visible=False),
        bars=(PlotBars("", "accent", tuple(sizes), tooltips=tuple(tips)),) if sizes else (),
    )


def layers_title(point: CachePoint) -> str:
    """`Per layer`, and how much each holds where all hold the same."""
    sizes = {size for size in point.layers if size}
    return tr("Per layer, {size} each").format(size=words.size(min(sizes))) if len(sizes) == 1 else tr("Per layer")
