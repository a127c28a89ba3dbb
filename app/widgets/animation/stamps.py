"""A draft's tokens, each stamped: accepted, refused, or never reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets.animation.motion import Animated, between, part
from resources.language import tr

CHIP, STAMP, PAD, GAP = 24, 11, 8, 5
"""Pixels at 100 %: height of a chip, side of its stamp, room at its ends, between two chips."""
PRESSED_FROM = 2.2
"""How much larger a stamp comes down."""
Fate = Literal["accepted", "refused", "unreached", "bonus", "correction"]
COLOURS: dict[Fate, str] = {
    "accepted": "kept",
    "refused": "refused",
    "unreached": "pruned",
    "bonus": "finished",
    "correction": "refused",
}


class Chip(NamedTuple):
    """One token of the draft, or the model's own behind it."""

    label: str
    fate: Fate


class Stamps(Animated):
    """Chips in their order; those that find no room are counted at the end."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setObjectName("draftStamps")
        self._chips: tuple[Chip, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("The draft, checked"))

    def show_chips(self, chips: Sequence[Chip], moves: bool) -> None:
        """Show these; their stamps come down one after another where it `moves`."""
        if tuple(chips) == self._chips:
            return
        self._chips = tuple(chips)
        self.setAccessibleDescription("; ".join(f"{chip.label} {chip.fate}" for chip in chips))
        self.begin(moves)

    def stamped(self, place: int) -> float:
        """How far the stamp of that chip has come down: 1 where it is."""
        share = 1 / max(1, len(self._chips))
        return part(self.progress, place * share, (place + 1) * share)

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self._theme.px(200), self._theme.px(CHIP + 4))

    def minimumSizeHint(self) -> QSize:
        """Never cut off."""
        return QSize(self._theme.px(100), self._theme.px(CHIP + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """As many chips as there is room for."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(13))
        metrics, theme, left = QFontMetricsF(painter.font()), self._theme, 2.0
        for place, chip in enumerate(self._chips):
            width = metrics.horizontalAdvance(chip.label) + theme.px(2 * PAD + STAMP + 4)
            more = f"+{len(self._chips) - place}"
            rest = metrics.horizontalAdvance(more) + theme.px(GAP) if place + 1 < len(self._chips) else 0.0
            if left + width + rest > self.width():
                painter.setPen(theme.color("muted"))
                painter.drawText(
                    QRectF(left, 0, self.width() - left, self.height()), Qt.AlignmentFlag.AlignVCenter, more
                )
                return
            self._paint_chip(painter, QRectF(left, 2, width, theme.px(CHIP)), chip, self.stamped(place))
            left += width + theme.px(GAP)

    def _paint_chip(self, painter: QPainter, box: QRectF, chip: Chip, down: float) -> None:
        theme, colour = self._theme, self._theme.color(COLOURS[chip.fate])
        reached = chip.fate != "unreached"
        line = Qt.PenStyle.SolidLine if reached else Qt.PenStyle.DashLine
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour if down > 0 else theme.color("line"), theme.px(1.5), line))
        painter.drawRoundedRect(box, theme.px(6), theme.px(6))
        painter.setPen(theme.color("text" if reached else "muted"))
        words = box.adjusted(theme.px(PAD), 0, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, chip.label)
        if reached and down > 0:
            colour.setAlphaF(min(1.0, 0.3 + 0.7 * down))
            middle = QPointF(box.right() - theme.px(PAD + STAMP / 2), box.center().y())
            side = theme.px(STAMP) * between(PRESSED_FROM, 1.0, down) / 2
            painter.setPen(QPen(colour, theme.px(2.4), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            _paint_stamp(painter, middle, side, chip.fate in ("refused", "correction"))


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
