"""Contents of a run's cache at any position of the text, from measurements. No Qt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from decodescope import core
from decodescope.app.state.incremental import IncrementalFold

if TYPE_CHECKING:
    from decodescope.core.events import CacheMeasured, CachePlan, Event

Polyline = list[tuple[float, float]]
"""Points (x, bytes) to draw."""

_TOLERANCE = 0.05
"""Relative tolerance between measurement and plan."""


class CacheForecast(NamedTuple):
    """Prediction from a cache plan; without a plan, every result is empty."""

    plan: CachePlan | None = None

    def predicted(self, length: int) -> float | None:
        """Return the predicted bytes for this many tokens; None without a plan."""
        return _interpolate(self.plan.lengths, self.plan.predicted, length) if self.plan is not None else None

    def dynamic(self, length: int) -> float | None:
        """Return the bytes that a cache that keeps everything would take."""
        return _interpolate(self.plan.lengths, self.plan.dynamic, length) if self.plan is not None else None

    def matches(self, length: int, size: int) -> bool:
        """Return whether `size` bytes for this many tokens match the prediction."""
        predicted = self.predicted(length)
        return predicted is not None and abs(predicted - size) <= _TOLERANCE * size

    def bends(self, first: int, last: int) -> Sequence[int]:
        """Return the lengths at which the predicted curve bends: those of the plan, or those around each block boundary
        from `first` on.
        """
        if self.plan is None:
            return ()
        return self.plan.lengths if self.plan.block is None else _block_edges(self.plan.block, first, last)

    def lines(self, positions: Sequence[tuple[int, int]]) -> tuple[Polyline, Polyline]:
        """Return (predicted, dynamic) at these (x, tokens); empty without a plan."""
        if self.plan is None:
            return [], []
        lengths = self.plan.lengths
        predicted, dynamic = (
            [(float(x), _interpolate(lengths, sizes, length)) for x, length in positions]
            for sizes in (self.plan.predicted, self.plan.dynamic)
        )
        return predicted, dynamic

    @property
    def is_plain(self) -> bool:
        """Whether the cache keeps everything unchanged, so that no “dynamic” line is needed."""
        return self.plan is None or self.plan.predicted == self.plan.dynamic

    @property
    def is_plain_or_windowed(self) -> bool:
        """Whether the cache neither reserves room nor quantizes, so that its size follows from its tokens."""
        return self.plan is not None and self.plan.capacity is None and self.plan.block is None

    @property
    def per_token(self) -> int:
        """Bytes per additional token if everything is kept; 0 for a state of constant size."""
        plan = self.plan
        if plan is None or len(plan.lengths) < 2:
            return 0
        return (plan.dynamic[-1] - plan.dynamic[0]) // (plan.lengths[-1] - plan.lengths[0])

    @property
    def kept_per_token(self) -> int:
        """Bytes that a token outside the window keeps, in the layers without a window."""
        if self.plan is None:
            return 0
        full, windowed = (core.sizes.named_number(self.plan.size, f"{kind} layers") for kind in ("full", "windowed"))
        return self.per_token * full // (full + windowed) if full and windowed else 0

    @property
    def limit(self) -> int:
        """Largest number of tokens the run may write."""
        return max(1, self.plan.lengths[-1] - self.plan.start) if self.plan is not None else 1


def _interpolate(xs: Sequence[int], ys: Sequence[int], x: int) -> float:
    """Interpolate linearly between neighbours; constant beyond both ends."""
    after = bisect_right(xs, x)
    if after == 0 or after == len(xs):
        return float(ys[0] if after == 0 else ys[-1])
    a, b = xs[after - 1], xs[after]
    return ys[after - 1] + (ys[after] - ys[after - 1]) * (x - a) / (b - a)


def _block_edges(block: int, first: int, last: int) -> list[int]:
    """Return the lengths on both sides of every block boundary within the text."""
    return [k * block - side for k in range(max(1, first // block), last // block + 1) for side in (1, 0)]


CachePart = tuple[str, str]
"""(place, part), as named in `CacheMeasured.parts`."""

_PLACE_ORDER = ("disk", "host", "device")
_PART_ORDER = ("cross", "self", "keys", "values", "scales", "residual", "state")


class CachePoint(NamedTuple):
    """The cache after `x` tokens of the text were written."""

    x: int
    tokens: int
    """Tokens that the cache had read; 0 for a state without length."""
    bytes: int
    peak: int
    parts: tuple[tuple[CachePart, int], ...]
    layers: tuple[int, ...]
    held_ranges: tuple[tuple[int, int], ...] = ()
    error: float | None = None
    measured: bool = True
    """False for points between two measurements."""
    spare: int = 0
    """Bytes allocated for later tokens, at a measurement."""
    device_memory: tuple[int, int, int] = (0, 0, 0)
    """Bytes of a GPU in tensors, otherwise reserved, and free, at a measurement."""


class CacheHistory(IncrementalFold):
    """Cache history that grows with a run's events; `at(x)` and the curves cover any position."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[CachePoint] = []
        self.forecast = CacheForecast()
        self.notices: list[str] = []
        self.written = 0
        self._curve: tuple[int, list[CachePoint]] | None = None
        """The curve requested last, with its end; None after new events."""
        self._parts: list[CachePart] | None = None
        self._read_ahead: int | None = None
        self._partial_block: tuple[int, CachePoint | None] | None = None
        """Derived from all points and used for each point of a curve; cached until new events arrive."""
        self._switch_position: int | None = None
        """Tokens written when memory ran out, until the next cache has been measured."""

    def append(self, events: Iterable[Event]) -> None:
        """Append events."""
        for event in events:
            match event:
                case core.events.TokenChosen() | core.events.BeamStep():
                    self.written = max(self.written, event.step + 1)
                case core.events.CachePlan():
                    self.forecast = CacheForecast(event)
                    self._clear_cached()
                case core.events.Notice(kind="memory_fallback"):
                    self.notices.append(event.message)
                    self._switch()
                    self._clear_cached()
                case core.events.CacheMeasured():
                    self._add(event)
                    self._clear_cached()
        self._curve = None  # it may end at a token that was not measured

    def _clear_cached(self) -> None:
        """Drop the cached values."""
        self._curve = self._parts = self._read_ahead = self._partial_block = None

    def _add(self, event: CacheMeasured) -> None:
        parts = tuple(((place, part), size) for place, part, size in event.parts)
        read = event.held[-1][1] if event.held else event.tokens  # an evicting cache counts only the tokens it holds
        point = CachePoint(
            self.written, read, event.bytes, event.peak, parts, event.layers, event.held, event.error,
            spare=event.spare,
            device_memory=(event.device_used, event.device_reserved, event.device_free),
        )  # fmt: skip
        while self.points and self.points[-1].x >= point.x:
            self.points.pop()
        if self._switch_position is not None and self._switch_position + 1 < point.x:
            self.points.append(self._extrapolate(point, self._switch_position + 1))
        self._switch_position = None
        if not self.points and point.x:
            self.points.append(point._replace(x=0, tokens=self._lead(point)))
        self.points.append(point)

    def _switch(self) -> None:
        """Continue with another cache: the curve of the old one ends at this position."""
        if self.points and self.written > self.points[-1].x:
            self.points.append(self._extrapolate(self.points[-1], self.written))
        self._switch_position = self.written

    def _lead(self, first: CachePoint) -> int:
        return self.plan.start if self.plan is not None and first.tokens else first.tokens

    @property
    def plan(self) -> CachePlan | None:
        """The cache's plan; after a switch because memory ran out, that of the new cache. None before the first
        plan.
        """
        return self.forecast.plan

    @property
    def parts(self) -> list[CachePart]:
        """Every (place, part) that occurred, those of constant size below those that move."""
        if self._parts is None:
            found = {part for point in self.points for part, _ in point.parts}
            self._parts = sorted(found, key=_part_order)
        return self._parts

    def length_at(self, x: int) -> int:
        """Return the number of tokens the decoder has read when `x` are written: measured, or as far behind or ahead of
        the text as at the last measurement.
        """
        start = self.plan.start if self.plan else 0
        index = bisect_left(self.points, x, key=lambda point: point.x)
        here = self.points[index] if index < len(self.points) else None
        if here is not None and here.x == x and here.measured and here.tokens:
            return max(here.tokens, start)
        if self._read_ahead is None:
            known = next((point for point in reversed(self.points) if point.tokens and point.x), None)
            self._read_ahead = (
                known.tokens - known.x if known is not None else (self.plan.start if self.plan else 1) - 1
            )
        return max(self._read_ahead + x, start)

    def at(self, x: int) -> CachePoint | None:
        """Return the cache at this position: measured, or interpolated between its neighbours; None before the first
        measurement.
        """
        if not self.points:
            return None
        after = bisect_right(self.points, x, key=lambda point: point.x)
        before = self.points[max(0, after - 1)]
        if before.x == x:
            return before
        if after == len(self.points):
            return self._extrapolate(before, x)
        return self._interpolate(before, self.points[after], x)

    def _extrapolate(self, last: CachePoint, x: int) -> CachePoint:
        """Extrapolate beyond the last measurement, as predicted if the plan is exact."""
        if self.plan is None or self.plan.block is not None or not last.tokens or x > self.written:
            return last._replace(measured=False)
        length = self.length_at(x)
        return _scaled(last, x, length, self.forecast.predicted(length) or float(last.bytes))

    def _interpolate(self, a: CachePoint, b: CachePoint, x: int) -> CachePoint:
        length = self.length_at(x) if b.tokens else 0
        share = (x - a.x) / (b.x - a.x)
        if self.plan is not None and self.plan.block is not None and b.tokens:
            return self._interpolate_blocks(a, b, x, length)
        if b.tokens and self._has_diverged(a, b):
            later = b._replace(peak=a.peak, held_ranges=(), measured=False)
            return _scaled(later, x, length, self.forecast.predicted(length) or float(b.bytes))
        low, high = dict(a.parts), dict(b.parts)
        mixed = {part: low.get(part, 0) + (high.get(part, 0) - low.get(part, 0)) * share for part in {**low, **high}}
        total = self.forecast.predicted(length) if b.tokens and self._matches_plan(a) else None
        parts = tuple((part, round(size)) for part, size in mixed.items())
        layers = tuple(round(x + (y - x) * share) for x, y in zip_longest(a.layers, b.layers, fillvalue=0))
        between = a._replace(parts=parts, layers=layers, bytes=sum(size for _, size in parts))
        return _scaled(between, x, length, total or float(between.bytes))

    def _has_diverged(self, a: CachePoint, b: CachePoint) -> bool:
        """Return whether a search kept one row at `a` and several from then on."""
        return not self._matches_plan(a) and self._matches_plan(b)

    def shared_rows(self, point: CachePoint) -> int:
        """Return how many texts share the one row that the cache holds at this point; 1 once each has its own."""
        predicted = round(self.forecast.predicted(point.tokens) or 0) if point.tokens else 0
        is_shared = predicted > point.bytes > 0 and predicted % point.bytes == 0 and not self._matches_plan(point)
        return predicted // point.bytes if is_shared and self.forecast.is_plain_or_windowed else 1

    def _matches_plan(self, point: CachePoint) -> bool:
        """Return whether the measurement matched the plan at this point."""
        return self.forecast.matches(point.tokens, point.bytes)

    def _interpolate_blocks(self, a: CachePoint, b: CachePoint, x: int, length: int) -> CachePoint:
        """Interpolate a quantized cache: full blocks are written at once, and the residual grows with every token."""
        assert self.plan is not None
        block = self.plan.block or 1
        side = a if length // block == a.tokens // block else b
        known = next((p for p in (side, a, b) if _is_partial(p, block)), None) or self._first_partial(block)
        each = _residual(known) / (known.tokens % block) if known is not None else 0.0
        waiting = round(each * (length % block))
        parts = tuple((part, waiting if part[1] == "residual" else size) for part, size in side.parts)
        size = sum(size for _, size in parts)
        return CachePoint(x, length, size, max(a.peak, size), parts, side.layers, (), side.error, measured=False)

    def _first_partial(self, block: int) -> CachePoint | None:
        """Return the first point with a partially filled block."""
        if self._partial_block is None or self._partial_block[0] != block:
            self._partial_block = block, next((p for p in self.points if _is_partial(p, block)), None)
        return self._partial_block[1]

    def curve(self, last: int) -> list[CachePoint]:
        """Return the points to draw up to `last`, including those between measurements where the curve bends."""
        if self._curve is None or self._curve[0] != last:
            self._curve = last, self._curve_to(last) if self.points else []
        return self._curve[1]

    def _curve_to(self, last: int) -> list[CachePoint]:
        exact = self.plan is not None and self.plan.block is None and self.points[-1].tokens
        end = min(last, self.written if exact else self.points[-1].x)
        xs = {point.x for point in self.points if point.x <= end} | {end}
        xs |= {a.x + 1 for a, b in pairwise(self.points) if a.x < end and self._has_diverged(a, b)}
        if self.plan is not None and self.points[-1].tokens:
            lead = self.length_at(end) - end
            xs |= {length - lead for length in self.forecast.bends(lead, lead + end) if 0 < length - lead < end}
        return [point for x in sorted(xs) if (point := self.at(x)) is not None]

    def peak(self, x: int) -> int:
        """Return the most bytes held up to this position, also between measurements."""
        return max((max(point.bytes, point.peak) for point in self.curve(x)), default=0)

    def lines(self, top: int) -> tuple[Polyline, Polyline]:
        """Return (predicted, dynamic) as (x, bytes) from 0 to `top` written tokens."""
        if self.plan is None:
            return [], []
        lead = self.length_at(top) - top
        xs = sorted({0, top, *(length - lead for length in self.plan.lengths if 0 < length - lead < top)})
        return self.forecast.lines([(x, self.length_at(x)) for x in xs])


def _scaled(point: CachePoint, x: int, length: int, total: float) -> CachePoint:
    """Scale a point to another total, except for the cross-attention part, which never changes."""
    fixed = sum(size for (_, part), size in point.parts if part == "cross")
    scale = (total - fixed) / (point.bytes - fixed) if point.bytes > fixed else 1.0
    parts = tuple((key, size if key[1] == "cross" else round(size * scale)) for key, size in point.parts)
    growing = len(point.layers) // 2 if fixed else len(point.layers)
    layers = (*(round(size * scale) for size in point.layers[:growing]), *point.layers[growing:])
    size = sum(size for _, size in parts)
    return CachePoint(x, length, size, max(point.peak, size), parts, layers, (), point.error, measured=False)


def _part_order(part: CachePart) -> tuple[int, int]:
    """Sort parts of constant size first, and names unknown to this version last."""
    place, name = part
    return (
        _PLACE_ORDER.index(place) if place in _PLACE_ORDER else len(_PLACE_ORDER),
        _PART_ORDER.index(name) if name in _PART_ORDER else len(_PART_ORDER),
    )


def _is_partial(point: CachePoint, block: int) -> bool:
    """Return whether a block was partially filled at that point."""
    return point.tokens % block > 0 and _residual(point) > 0


def _residual(point: CachePoint) -> int:
    return sum(size for (_, part), size in point.parts if part == "residual")
