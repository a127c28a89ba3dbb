"""A funnel: stages from left to right, each as tall as the logarithm of what survives it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme.theme import Theme
from app.widgets.spoken import Part, Role, Spoken
from resources.language import tr

SIDE_BY_SIDE = 5
"""More stages than this are listed below each other."""


class FunnelStage(NamedTuple):
    """How many are left after a stage, what it is called, and what it did in words."""

    survivors: int
    label: str
    tip: str = ""
    last: bool = False
    """The outcome, drawn in full colour."""
    top_removed: float = 0.0
    """Share of the distribution that was cut from the top, not from the bottom: the bar's upper end is hatched."""


def heights(survivors: Sequence[int]) -> list[float]:
    """Share of the tallest bar for each count: linear in log(1 + count), never quite 0."""
    most = math.log1p(max(survivors, default=1))
    return [max(0.05, math.log1p(count) / most) if most else 0.05 for count in survivors]


def _said(stage: FunnelStage) -> str:
    return tr("{stage}: {count:,} left").format(stage=stage.label, count=stage.survivors)


class Funnel(QWidget, Spoken):
    """Painted stages; what a stage did appears on hover."""

    spoken_role = Role.List

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stages: tuple[FunnelStage, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Funnel"))

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_stages(self, stages: Sequence[FunnelStage]) -> None:
        """Show these stages."""
        resized = len(stages) != len(self._stages)
        self._stages = tuple(stages)
        self.setAccessibleDescription("; ".join(map(_said, stages)))
        if resized:
            self.updateGeometry()
        self.update()

    @property
    def stages(self) -> tuple[FunnelStage, ...]:
        """What is shown."""
        return self._stages

    def spoken_parts(self) -> list[Part]:
        """A stage after the other: its label, how many it left, what it did."""
        return [
            Part(f"{number + 1}: {said}, {stage.tip}" if stage.tip else f"{number + 1}: {said}",
                 partial(self._stage_rect, number), value=f"{stage.survivors:,}")
            for number, (stage, said) in enumerate(zip(self._stages, map(_said, self._stages), strict=True))
        ]  # fmt: skip

    def _stage_rect(self, number: int) -> QRect:
        if self.listed:
            height = self._theme.px(24)
            return QRect(0, number * height, self.width(), height)
        cell = self._cells()[number].toAlignedRect()
        return cell.adjusted(0, 0, 0, self.height() - cell.height())

    @property
    def listed(self) -> bool:
        """Whether there are too many stages to stand side by side."""
        return len(self._stages) > SIDE_BY_SIDE

    def sizeHint(self) -> QSize:
        """A block of bars with two lines of text, or one line a stage."""
        height = 24 * len(self._stages) if self.listed else 100
        return QSize(self._theme.px(240), self._theme.px(height))

    def minimumSizeHint(self) -> QSize:
        """Narrow, but never cut off below."""
        return QSize(self._theme.px(160), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """The stages, one way or the other."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.listed:
            self._paint_list(painter)
        elif self._stages:
            self._paint_bars(painter)

    def _cells(self) -> list[QRectF]:
        """Where each bar may stand."""
        gap, count = self._theme.px(8), len(self._stages)
        width = (self.width() - gap * (count - 1)) / count
        return [QRectF(n * (width + gap), 0, width, self._theme.px(62)) for n in range(count)]

    def _paint_bars(self, painter: QPainter) -> None:
        cells, shares = self._cells(), heights([stage.survivors for stage in self._stages])
        bars = [cell.adjusted(0, cell.height() * (1 - share), 0, 0) for cell, share in zip(cells, shares, strict=True)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("accent", 0.22))
        for left, right in itertools.pairwise(bars):
            corners = [left.topRight(), right.topLeft(), right.bottomLeft(), left.bottomRight()]
            painter.drawPolygon(QPolygonF([QPointF(corner) for corner in corners]))
        for stage, bar in zip(self._stages, bars, strict=True):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("accent", 1.0 if stage.last else 0.8))
            painter.drawRoundedRect(bar, 2, 2)
            self._paint_top(painter, stage, bar, bar.height())
            self._paint_words(painter, stage, bar)

    def _paint_top(self, painter: QPainter, stage: FunnelStage, bar: QRectF, length: float) -> None:
        """What was cut from the top: a hatched end, `length` being that of the whole bar."""
        if stage.top_removed:
            theme, cut = self._theme, max(self._theme.px(4), length * stage.top_removed)
            lies = length == bar.width() and self.listed
            end = bar.adjusted(bar.width() - cut, 0, 0, 0) if lies else bar.adjusted(0, 0, 0, cut - bar.height())
            painter.fillRect(end, theme.color("window"))
            painter.fillRect(end, QBrush(theme.color("refused"), Qt.BrushStyle.BDiagPattern))
            painter.setPen(QPen(theme.color("refused"), theme.scale))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(end)

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

    def _paint_list(self, painter: QPainter) -> None:
        theme, height = self._theme, self._theme.px(24)
        label, figure = theme.px(118), theme.px(56)
        track = self.width() - label - figure - theme.px(8)
        shares = heights([stage.survivors for stage in self._stages])
        for n, (stage, share) in enumerate(zip(self._stages, shares, strict=True)):
            row = QRectF(0, n * height, self.width(), height)
            painter.setFont(theme.font(12, tabular=True))
            painter.setPen(theme.color("muted"))
            shown = QFontMetricsF(painter.font()).elidedText(stage.label, Qt.TextElideMode.ElideRight, label - 6)
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, shown)
            painter.setPen(theme.color("text"))
            flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(row, flags, f"{stage.survivors:,}")
            width = track * share
            bar = QRectF(label + (track - width) / 2, row.top() + theme.px(4), width, height - theme.px(8))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent", 1.0 if stage.last else 0.8))
            painter.drawRoundedRect(bar, 2, 2)
            self._paint_top(painter, stage, bar, bar.width())

    def stage_at(self, x: float, y: float) -> FunnelStage | None:
        """The stage under a point of the widget."""
        if not self._stages:
            return None
        share = y / self._theme.px(24) if self.listed else x / max(1, self.width()) * len(self._stages)
        return self._stages[int(share)] if 0 <= share < len(self._stages) else None

    def event(self, event: QEvent) -> bool:
        """Tell what the stage under the pointer did."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            stage = self.stage_at(event.pos().x(), event.pos().y())
            QToolTip.showText(event.globalPos(), stage.tip if stage else "", self)
            return True
        return super().event(event)
