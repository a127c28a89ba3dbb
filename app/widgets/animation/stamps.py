"""A draft's tokens, each stamped: accepted, refused, or never reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.animation.motion import AnimatedWidget, interpolate, sub_progress
from resources.language import tr

CHIP_HEIGHT, STAMP_SIZE, CHIP_PADDING, CHIP_GAP = 24, 11, 8, 5
"""Pixels at 100 %: height of a chip, side of its stamp, room at its ends, between two chips."""
STAMP_START_SCALE = 2.2
"""How much larger a stamp comes down."""
DraftOutcome = Literal["accepted", "refused", "unreached", "bonus", "correction"]
OUTCOME_COLOURS: dict[DraftOutcome, str] = {
    "accepted": "kept",
    "refused": "refused",
    "unreached": "pruned",
    "bonus": "finished",
    "correction": "refused",
}


class DraftChip(NamedTuple):
    """One token of the draft, or the model's own behind it."""

    label: str
    outcome: DraftOutcome


class DraftStamps(AnimatedWidget):
    """Chips in their order; those that find no room are counted at the end."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("draftStamps")
        self._chips: tuple[DraftChip, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("The draft, checked"))

    def show_chips(self, chips: Sequence[DraftChip], animate: bool) -> None:
        """Show these; their stamps come down one after another where it `animate`."""
        if tuple(chips) == self._chips:
            return
        self._chips = tuple(chips)
        self.setAccessibleDescription("; ".join(f"{chip.label} {chip.outcome}" for chip in chips))
        self.start_motion(animate)

    def stamp_progress(self, index: int) -> float:
        """How far the stamp of that chip has come down: 1 where it is."""
        duration = 1 / max(1, len(self._chips))
        return sub_progress(self.progress, index * duration, (index + 1) * duration)

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self._theme.px(200), self._theme.px(CHIP_HEIGHT + 4))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self._theme.px(CHIP_HEIGHT + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """As many chips as there is room for."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(13))
        metrics, theme, left = QFontMetricsF(painter.font()), self._theme, 2.0
        for index, chip in enumerate(self._chips):
            width = metrics.horizontalAdvance(chip.label) + theme.px(2 * CHIP_PADDING + STAMP_SIZE + 4)
            more = f"+{len(self._chips) - index}"
            rest = metrics.horizontalAdvance(more) + theme.px(CHIP_GAP) if index + 1 < len(self._chips) else 0.0
            if left + width + rest > self.width():
                painter.setPen(theme.color("muted"))
                painter.drawText(
                    QRectF(left, 0, self.width() - left, self.height()), Qt.AlignmentFlag.AlignVCenter, more
                )
                return
            self._paint_chip(painter, QRectF(left, 2, width, theme.px(CHIP_HEIGHT)), chip, self.stamp_progress(index))
            left += width + theme.px(CHIP_GAP)

    def _paint_chip(self, painter: QPainter, box: QRectF, chip: DraftChip, down: float) -> None:
        theme, colour = self._theme, self._theme.color(OUTCOME_COLOURS[chip.outcome])
        reached = chip.outcome != "unreached"
        line = Qt.PenStyle.SolidLine if reached else Qt.PenStyle.DashLine
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour if down > 0 else theme.color("line"), theme.px(1.5), line))
        painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        painter.setPen(theme.color("text" if reached else "muted"))
        words = box.adjusted(theme.px(CHIP_PADDING), 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, chip.label)
        if reached and down > 0:
            colour.setAlphaF(min(1.0, 0.3 + 0.7 * down))
            middle = QPointF(box.right() - theme.px(CHIP_PADDING + STAMP_SIZE / 2), box.center().y())
            side = theme.px(STAMP_SIZE) * interpolate(STAMP_START_SCALE, 1.0, down) / 2
            painter.setPen(QPen(colour, theme.px(2.4), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            _paint_stamp(painter, middle, side, chip.outcome in ("refused", "correction"))


def _paint_stamp(painter: QPainter, middle: QPointF, half: float, crossed: bool) -> None:
    """A cross, or a hook."""
    x, y = middle.x(), middle.y()
    if crossed:
        painter.drawLine(QPointF(x - half, y - half), QPointF(x + half, y + half))
        painter.drawLine(QPointF(x - half, y + half), QPointF(x + half, y - half))
    else:
        painter.drawPolyline(
            [QPointF(x - half, y), QPointF(x - half / 4, y + half * 0.8), QPointF(x + half, y - half * 0.8)]
        )
