"""Legends: of a colour scale (a wedge between two labels, and a hint), and of single colours (marks with words)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.resources.language import join_names, join_sentences, tr

if TYPE_CHECKING:
    from PySide6.QtGui import QLinearGradient

WEDGE_LENGTH = 96
"""Length of the wedge in pixels at 100 %, if there is room."""
SWATCH_LENGTH = 20
"""Length of a step's line in pixels at 100 %."""


class LegendStep(NamedTuple):
    """One colour of a scale with few steps: label, position on the ramp, thickness at 100 %."""

    label: str
    ramp_position: float
    thickness: float


class ColourLegend(Themed, QWidget, AccessibleWidget):
    """A legend in one line. The wedge is thick at the first label, like the underlines that it explains."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._low, self._high, self._hint = theme, "", "", ""
        self._steps: Sequence[LegendStep] = ()

    def set_labels(self, low: str, high: str, hint: str, steps: Sequence[LegendStep] = ()) -> None:
        """Set the labels of the scale's ends (empty: no scale) or of each of its `steps`, and the hint."""
        self._low, self._high, self._hint, self._steps = low, high, hint, steps
        named = tr("Colours: {colours}.").format(colours=join_names(s.label for s in steps)) if steps else ""
        if low:
            named = tr("Colours from {low} to {high}.").format(low=low, high=high)
        self.setAccessibleName(join_sentences(named, hint))
        self.update()

    def set_hint(self, hint: str) -> None:
        """Replace the hint."""
        if hint != self._hint:
            self.set_labels(self._low, self._high, hint, self._steps)

    def sizeHint(self) -> QSize:
        """Return the size of one line of small type."""
        return QSize(round(self._scale_width() + self._text_width(self._hint)), self._theme.px(30))

    def minimumSizeHint(self) -> QSize:
        """Return the size of the scale or of its first step; the hint and further steps are hidden without room."""
        width = self._theme.px(2 * SWATCH_LENGTH) if self._steps else round(self._scale_width())
        return QSize(width, self._theme.px(30))

    def _text_width(self, text: str) -> float:
        return QFontMetricsF(self._theme.font(12)).horizontalAdvance(text)

    def _scale_width(self) -> float:
        """Width of labels and wedge with the gap after them; 0 without a scale."""
        if self._steps:
            return sum(self._text_width(step.label) + self._theme.px(SWATCH_LENGTH + 20) for step in self._steps)
        if not self._low:
            return 0.0
        wedge = self._theme.px(WEDGE_LENGTH) + 2 * self._theme.space(8)
        return self._text_width(self._low) + wedge + self._text_width(self._high) + self._theme.space(16)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the scale and the hint."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(12))
        painter.setPen(self._theme.color("muted"))
        x = float(self.contentsRect().left())
        if self._low:
            x = self._paint_text(painter, x, self._low) + self._theme.space(8)
            x = self._paint_wedge(painter, x) + self._theme.space(8)
            x = self._paint_text(painter, x, self._high) + self._theme.space(16)
        for step in self._steps:
            if x + self._theme.px(SWATCH_LENGTH + 6) + self._text_width(step.label) > self.width():
                return
            x = self._paint_swatch(painter, x, step)
        if x + self._text_width(self._hint) <= self.width():
            self._paint_text(painter, x, self._hint)

    def _paint_text(self, painter: QPainter, x: float, text: str) -> float:
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
        return x + width

    def _paint_swatch(self, painter: QPainter, x: float, step: LegendStep) -> float:
        """Paint a line in the step's colour and thickness, and its label."""
        width, thick = self._theme.px(SWATCH_LENGTH), step.thickness * self._theme.scale
        painter.fillRect(QRectF(x, self.height() / 2 - thick / 2, width, thick), self._theme.ramp(step.ramp_position))
        return self._paint_text(painter, x + width + self._theme.px(6), step.label) + self._theme.px(14)

    def _wedge_width(self) -> float:
        """Return the wedge's width, reduced if there is little room so that both labels fit."""
        return max(
            self._theme.px(16),
            min(self._theme.px(WEDGE_LENGTH), self._theme.px(WEDGE_LENGTH) + self._remaining_width()),
        )

    def _remaining_width(self) -> float:
        return self.contentsRect().width() - self._scale_width() + self._theme.space(16)

    def _paint_wedge(self, painter: QPainter, x: float) -> float:
        width, thick, thin = self._wedge_width(), self._theme.scale * 3.2, self._theme.scale * 1.2
        middle = self.height() / 2 + 0.5
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_gradient(x, x + width, self._theme.ramp))
        corners = [(x, -thick), (x + width, -thin), (x + width, thin), (x, thick)]
        painter.drawPolygon(QPolygonF([QPointF(left, middle + rise) for left, rise in corners]))
        painter.restore()
        return x + width


def _gradient(left: float, right: float, ramp: Callable[[float], object]) -> QLinearGradient:
    from PySide6.QtGui import QLinearGradient  # the empty page has no ramp

    gradient = QLinearGradient(left, 0, right, 0)
    for step in range(5):
        gradient.setColorAt(step / 4, ramp(step / 4))
    return gradient


class LegendKey(NamedTuple):
    """A word and its mark: area, disk (hatched), cell, hollow, or line (dashed)."""

    word: str
    colour: str
    mark: str = "area"


class KeyLegend(Themed, QWidget, AccessibleWidget):
    """Marks with words, on as many lines as needed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keys: tuple[LegendKey, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.hide()

    def set_keys(self, keys: Sequence[LegendKey]) -> None:
        """Show these keys."""
        if tuple(keys) != self._keys:
            self._keys = tuple(keys)
            self.setVisible(bool(keys))
            self.setAccessibleName(tr("Colours: {colours}").format(colours=join_names(key.word for key in keys)))
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
        """Update the size for a new width."""
        super().resizeEvent(event)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return a height for all lines."""
        places = self._key_rects()
        return QSize(self._theme.px(120), round(places[-1].bottom()) if places else self._theme.px(20))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the marks and words."""
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
    if key.mark == "line":
        painter.setPen(QPen(theme.color(key.colour), 1.4 * theme.scale, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(box.left(), box.center().y()), QPointF(box.right(), box.center().y()))
        return
    radius = 2 if key.mark in ("cell", "hollow") else 0
    painter.drawRoundedRect(box, radius, radius)
    if key.mark == "disk":
        painter.fillRect(box, QBrush(theme.color(key.colour), Qt.BrushStyle.BDiagPattern))
