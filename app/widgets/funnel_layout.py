"""Layout and painting of a funnel's stages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPen, QPolygonF

from decodescope.app.theme.theme import Theme


class FunnelStage(NamedTuple):
    """A stage: the number of remaining tokens, its label, and a description of its effect."""

    survivors: int
    label: str
    tip: str = ""
    is_outcome: bool = False
    """Whether this is the final stage, drawn in full colour."""
    name: str = ""
    """Name by which the stage can be moved; empty if it is fixed."""
    original_survivors: int | None = None
    """Number of tokens that remained without the hypothetical change; None without one."""
    top_removed: float = 0.0
    """Fraction of the distribution removed from the top instead of the bottom; that end of the bar is hatched."""


def bar_fractions(survivors: Sequence[int], max_survivors: int = 0) -> list[float]:
    """Return bar heights as fractions of the tallest bar, linear in log(1 + count) and never 0. `max_survivors`: a
    lower bound for the tallest bar's count.
    """
    top = math.log1p(max(max_survivors, *survivors) if survivors else max_survivors)
    return [max(0.05, math.log1p(count) / top) if top else 0.05 for count in survivors]


class FunnelPainter:
    """Paints the stages in a given width, listed or side by side."""

    def __init__(self, theme: Theme, stages: Sequence[FunnelStage], width: int, listed: bool) -> None:
        self._theme, self._stages, self._width, self._listed = theme, stages, width, listed
        self._original_survivors = [
            stage.survivors if stage.original_survivors is None else stage.original_survivors for stage in stages
        ]

    @property
    def _is_hypothetical(self) -> bool:
        return any(stage.original_survivors is not None for stage in self._stages)

    def _bar_fractions(self) -> tuple[list[float], list[float]]:
        """Return the current and the original fractions on one scale."""
        now = [stage.survivors for stage in self._stages]
        return bar_fractions(now, max(self._original_survivors)), bar_fractions(self._original_survivors, max(now))

    def cells(self) -> list[QRectF]:
        """Return the cell of each bar."""
        gap, count = self._theme.px(8), len(self._stages)
        width = (self._width - gap * (count - 1)) / count
        return [QRectF(n * (width + gap), 0, width, self._theme.px(62)) for n in range(count)]

    def paint_bars(self, painter: QPainter) -> None:
        """Paint the stages side by side, as a funnel."""
        cells, (shares, before) = self.cells(), self._bar_fractions()
        bars = [cell.adjusted(0, cell.height() * (1 - share), 0, 0) for cell, share in zip(cells, shares, strict=True)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("accent", 0.12 if self._is_hypothetical else 0.22))
        for left, right in itertools.pairwise(bars):
            corners = [left.topRight(), right.topLeft(), right.bottomLeft(), left.bottomRight()]
            painter.drawPolygon(QPolygonF([QPointF(corner) for corner in corners]))
        for stage, bar, cell, was in zip(self._stages, bars, cells, before, strict=True):
            self._paint_bar(painter, stage, bar)
            self._paint_top(painter, stage, bar, bar.height())
            if stage.original_survivors is not None and stage.original_survivors != stage.survivors:
                high = cell.bottom() - cell.height() * was
                self._paint_mark(painter, QLineF(cell.left(), high, cell.right(), high))
            self._paint_words(painter, stage, bar)

    def paint_list(self, painter: QPainter) -> None:
        """Paint one stage per line, centred in its track."""
        theme, height = self._theme, self._theme.px(24)
        label, figure = theme.px(118), theme.px(56)
        track = self._width - label - figure - theme.px(8)
        for n, (stage, share, was) in enumerate(zip(self._stages, *self._bar_fractions(), strict=True)):
            row = QRectF(0, n * height, self._width, height)
            painter.setFont(theme.font(12, tabular=True))
            painter.setPen(theme.color("muted"))
            shown = QFontMetricsF(painter.font()).elidedText(stage.label, Qt.TextElideMode.ElideRight, label - 6)
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, shown)
            painter.setPen(theme.color("text"))
            painter.drawText(row, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{stage.survivors:,}")
            middle, half = label + track / 2, track * share / 2
            bar = QRectF(middle - half, row.top() + theme.px(4), 2 * half, height - theme.px(8))
            self._paint_bar(painter, stage, bar)
            self._paint_top(painter, stage, bar, bar.width())
            if stage.original_survivors is not None and stage.original_survivors != stage.survivors:
                for x in (middle - track * was / 2, middle + track * was / 2):
                    self._paint_mark(painter, QLineF(x, row.top() + theme.px(2), x, row.bottom() - theme.px(2)))

    def paint_focus_ring(self, painter: QPainter, rect: QRect) -> None:
        """Paint the focus ring."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self._theme.color("accent"), 1.5 * self._theme.scale))
        painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), 4, 4)

    def paint_drag(self, painter: QPainter, dragged_rect: QRect, insertion_line: QLineF) -> None:
        """Fade the dragged stage and paint the line where it would be inserted."""
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("panel", 0.6))
        painter.drawRect(dragged_rect)
        painter.setPen(QPen(self._theme.color("text"), 2.5 * self._theme.scale))
        painter.drawLine(insertion_line)

    def _paint_bar(self, painter: QPainter, stage: FunnelStage, bar: QRectF) -> None:
        theme = self._theme
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent", 1.0 if stage.is_outcome else 0.8))
        if self._is_hypothetical:
            painter.setBrush(theme.color("accent", 0.3))
            painter.setPen(QPen(theme.color("accent"), 1.2 * theme.scale, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(bar, 2, 2)

    def _paint_top(self, painter: QPainter, stage: FunnelStage, bar: QRectF, length: float) -> None:
        """Hatch the part that was removed from the top; `length` is that of the full bar."""
        if stage.top_removed:
            theme, cut = self._theme, max(self._theme.px(4), length * stage.top_removed)
            end = (
                bar.adjusted(bar.width() - cut, 0, 0, 0) if self._listed else bar.adjusted(0, 0, 0, cut - bar.height())
            )
            painter.fillRect(end, theme.color("window"))
            painter.fillRect(end, QBrush(theme.color("refused"), Qt.BrushStyle.BDiagPattern))
            painter.setPen(QPen(theme.color("refused"), theme.scale))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(end)

    def _paint_mark(self, painter: QPainter, line: QLineF) -> None:
        """Paint the mark of the original value."""
        painter.setPen(QPen(self._theme.color("text"), 1.6 * self._theme.scale))
        painter.drawLine(line)

    def _paint_words(self, painter: QPainter, stage: FunnelStage, bar: QRectF) -> None:
        theme = self._theme
        room = bar.adjusted(-theme.px(4), 0, theme.px(4), 0)
        lines = ((f"{stage.survivors:,}", 600, "text", 6), (stage.label, 400, "muted", 21))
        for text, weight, color, drop in lines:
            painter.setFont(theme.font(12 if weight == 600 else 11, weight, tabular=True))
            painter.setPen(theme.color(color))
            shown = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            cell = QRectF(room.left(), bar.bottom() + theme.px(drop), room.width(), theme.px(15))
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, shown)


MAX_SIDE_BY_SIDE = 5
"""Maximum number of stages side by side; more are listed vertically."""


@dataclass(frozen=True)
class FunnelLayout:
    """The stages in an area of this width and height, in pixels."""

    theme: Theme
    stages: tuple[FunnelStage, ...]
    width: int
    height: int

    @property
    def is_listed(self) -> bool:
        """Whether there are too many stages to place side by side."""
        return len(self.stages) > MAX_SIDE_BY_SIDE

    @property
    def movable_stages(self) -> list[str]:
        """Names of the stages that can be moved."""
        return [stage.name for stage in self.stages if stage.name]

    @property
    def painter(self) -> FunnelPainter:
        """The painter for this layout."""
        return FunnelPainter(self.theme, self.stages, self.width, self.is_listed)

    def stage_index(self, name: str) -> int:
        """Return the index of a movable stage among all stages."""
        return next(number for number, stage in enumerate(self.stages) if stage.name == name)

    def rect(self, number: int) -> QRect:
        """Return the rectangle of a stage, including its text."""
        if self.is_listed:
            height = self.theme.px(24)
            return QRect(0, number * height, self.width, height)
        cell = self.painter.cells()[number].toAlignedRect()
        return cell.adjusted(0, 0, 0, self.height - cell.height())

    def stage_at(self, x: float, y: float) -> FunnelStage | None:
        """Return the stage at a point."""
        if not self.stages:
            return None
        stage_position = y / self.theme.px(24) if self.is_listed else x / max(1, self.width) * len(self.stages)
        return self.stages[int(stage_position)] if 0 <= stage_position < len(self.stages) else None

    def movable_at(self, x: float, y: float) -> str:
        """Return the name of the stage at a point if it can be moved; otherwise an empty string."""
        stage = self.stage_at(x, y)
        return stage.name if stage is not None and len(self.movable_stages) > 1 else ""

    def target_index(self, x: float, y: float) -> int:
        """Return the index among the movable stages that is nearest to a point."""
        middle = [self.rect(self.stage_index(name)).center() for name in self.movable_stages]
        ways = [abs(point.y() - y) if self.is_listed else abs(point.x() - x) for point in middle]
        return ways.index(min(ways))

    def insertion_line(self, dragged: str, target: int) -> QLineF:
        """Return the line where the dragged stage would be inserted at an index among the movable stages."""
        names = self.movable_stages
        rect, is_behind = self.rect(self.stage_index(names[target])), target > names.index(dragged)
        if self.is_listed:
            y = rect.bottom() + 1 if is_behind else rect.top()
            return QLineF(0, y, self.width, y)
        x = rect.right() + 1 + self.theme.px(4) if is_behind else rect.left() - self.theme.px(4)
        return QLineF(x, 0, x, self.height)
