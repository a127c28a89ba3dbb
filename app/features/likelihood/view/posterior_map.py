"""A map of the posterior probability of two settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import blend
from decodescope.app.theme.themed import Themed
from decodescope.core.likelihood import probability_text
from decodescope.resources.language import tr

_MARGIN_LEFT, _MARGIN_BOTTOM, _HEIGHT = 52, 40, 260
"""Pixels at 100 %."""
_STEPS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, 1), Qt.Key.Key_Down: (0, -1)}


class PosteriorMap(Themed, QWidget):
    """Cells of a grid, darker where the posterior is higher; a cell is selected with the mouse or the arrow keys.

    `described(text)`: the description of the selected cell, or of the likeliest one.
    """

    described = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._values = np.zeros((0, 0))
        self._titles, self._labels = ("", ""), (list[str](), list[str]())
        self._cell: tuple[int, int] | None = None
        self.setObjectName("posteriorMap")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_values(
        self,
        values: np.typing.NDArray[np.float64],
        titles: tuple[str, str],
        labels: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        """Show probabilities [x, y] of two settings with these titles and labels of values."""
        self._values, self._titles, self._labels = values, titles, (list(labels[0]), list(labels[1]))
        self._cell = None
        self.setAccessibleName(tr("Posterior of {first} and {second}").format(first=titles[0], second=titles[1]))
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(360), self._theme.px(_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(220), self._theme.px(_HEIGHT))

    @property
    def _area(self) -> QRectF:
        px = self._theme.px
        return QRectF(
            px(_MARGIN_LEFT), px(6), self.width() - px(_MARGIN_LEFT + 6), self.height() - px(_MARGIN_BOTTOM + 6)
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint cells, labels and the selected cell."""
        painter, theme, area = QPainter(self), self._theme, self._area
        columns, rows = self._values.shape
        if not columns or not rows:
            painter.end()
            return
        width, height, top = area.width() / columns, area.height() / rows, float(self._values.max()) or 1.0
        ground, ink = theme.color("field"), theme.color("kept")
        for column in range(columns):
            left, right = round(area.left() + column * width), round(area.left() + (column + 1) * width)
            for row in range(rows):
                upper, lower = round(area.bottom() - (row + 1) * height), round(area.bottom() - row * height)
                share = (float(self._values[column, row]) / top) ** 0.6
                painter.fillRect(left, upper, right - left, lower - upper, blend(ink, ground, share))
        painter.setPen(theme.color("line"))
        painter.drawRect(area)
        self._paint_labels(painter, area, width, height)
        if self._cell is not None:
            column, row = self._cell
            painter.setPen(QPen(theme.color("text"), 2))
            painter.drawRect(QRectF(area.left() + column * width, area.bottom() - (row + 1) * height, width, height))
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    def _paint_labels(self, painter: QPainter, area: QRectF, width: float, height: float) -> None:
        theme, px = self._theme, self._theme.px
        painter.setFont(theme.font(11, tabular=True))
        painter.setPen(theme.color("muted"))
        every = max(1, round(px(44) / max(width, 1)))
        for column in range(0, len(self._labels[0]), every):
            box = QRectF(area.left() + (column + 0.5) * width - px(30), area.bottom() + px(2), px(60), px(16))
            painter.drawText(box, int(Qt.AlignmentFlag.AlignHCenter), self._labels[0][column])
        every = max(1, round(px(18) / max(height, 1)))
        for row in range(0, len(self._labels[1]), every):
            middle = area.bottom() - (row + 0.5) * height
            box = QRectF(0, middle - px(8), px(_MARGIN_LEFT - 6), px(16))
            painter.drawText(
                box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), self._labels[1][row]
            )
        painter.setPen(theme.color("text"))
        box = QRectF(area.left(), area.bottom() + px(19), area.width(), px(18))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignHCenter), f"{self._titles[0]} →   ↑ {self._titles[1]}")

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Select the cell under the mouse."""
        area, (columns, rows) = self._area, self._values.shape
        place = event.position()
        if not columns or not area.contains(place):
            self._select(None)
            return
        column = int((place.x() - area.left()) / area.width() * columns)
        row = int((area.bottom() - place.y()) / area.height() * rows)
        self._select((min(column, columns - 1), min(row, rows - 1)))

    def leaveEvent(self, event: QEvent) -> None:
        """Select nothing."""
        if not self.hasFocus():
            self._select(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the selection with the arrow keys."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or not self._values.size:
            super().keyPressEvent(event)
            return
        column, row = self._cell or self._best()
        columns, rows = self._values.shape
        self._select((min(max(column + step[0], 0), columns - 1), min(max(row + step[1], 0), rows - 1)))

    def _best(self) -> tuple[int, int]:
        place = np.unravel_index(int(self._values.argmax()), self._values.shape)
        return int(place[0]), int(place[1])

    def _select(self, cell: tuple[int, int] | None) -> None:
        if cell != self._cell:
            self._cell = cell
            self._describe()
            self.update()

    def _describe(self) -> None:
        if not self._values.size:
            return
        column, row = self._cell or self._best()
        text = tr("{first} {x}, {second} {y}: {probability}").format(
            first=self._titles[0], x=self._labels[0][column], second=self._titles[1], y=self._labels[1][row],
            probability=probability_text(float(self._values[column, row]), 2),
        )  # fmt: skip
        text = text if self._cell is not None else tr("Likeliest cell: {cell}").format(cell=text)
        self.setAccessibleDescription(text)
        self.described.emit(text)
