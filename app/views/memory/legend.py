"""The key to the colours of the memory view; it wraps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.accessibility import AccessibleWidget
from resources.language import tr


@dataclass(frozen=True, slots=True)
class LegendKey:
    """A word and its mark: area, disk (hatched), cell or hollow."""

    word: str
    colour: str
    mark: str = "area"


class MemoryLegend(QWidget, AccessibleWidget):
    """Marks and words, as many lines as they need."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._keys: tuple[LegendKey, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_keys(self, keys: Sequence[LegendKey]) -> None:
        """Explain these."""
        if tuple(keys) != self._keys:
            self._keys = tuple(keys)
            self.setVisible(bool(keys))
            self.setAccessibleName(tr("Colours: {colours}").format(colours=", ".join(key.word for key in keys)))
            self.updateGeometry()
            self.update()

    def _key_rects(self) -> list[QRectF]:
        theme, fm = self._theme, QFontMetricsF(self._theme.font(12))
        places, x, y = [], 0.0, 0.0
        for key in self._keys:
            width = theme.px(17) + fm.horizontalAdvance(key.word)
            if x and x + width > self.width():
                x, y = 0.0, y + theme.px(20)
            places.append(QRectF(x, y, width, theme.px(20)))
            x += width + theme.px(16)
        return places

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width, other lines."""
        super().resizeEvent(event)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """As high as its lines."""
        places = self._key_rects()
        return QSize(self._theme.px(120), round(places[-1].bottom()) if places else self._theme.px(20))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        """Mark, word, mark, word."""
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        for key, place in zip(self._keys, self._key_rects(), strict=True):
            size = theme.px(10)
            box = QRectF(place.left() + 0.5, place.center().y() - size / 2, size, size)
            _paint_mark(painter, key, box, theme)
            painter.setPen(theme.color("muted"))
            fm = QFontMetricsF(painter.font())
            painter.drawText(QPointF(place.left() + theme.px(17), place.center().y() + fm.capHeight() / 2), key.word)
        painter.end()


def _paint_mark(painter: QPainter, key: LegendKey, box: QRectF, theme: Theme) -> None:
    painter.setPen(QPen(theme.color(key.colour), 1) if key.mark != "cell" else Qt.PenStyle.NoPen)
    painter.setBrush(Qt.BrushStyle.NoBrush if key.mark == "hollow" else theme.color(key.colour, 0.38))
    if key.mark == "cell":
        painter.setBrush(theme.color(key.colour))
    painter.drawRoundedRect(box, 2 if key.mark in ("cell", "hollow") else 0, 2 if key.mark in ("cell", "hollow") else 0)
    if key.mark == "disk":
        painter.fillRect(box, QBrush(theme.color(key.colour), Qt.BrushStyle.BDiagPattern))
