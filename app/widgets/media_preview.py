"""Previews of audio and images: painting, thumbnails, and token positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed

Peaks = Sequence[tuple[float, float]]
_MIN_AMPLITUDE = 0.02
"""Minimum amplitude as a fraction of the height, so that silence is drawn as an unbroken line."""


def paint_waveform(
    painter: QPainter,
    rect: QRectF,
    peaks: Peaks,
    color: QColor,
    played_color: QColor | None = None,
    played_fraction: float = 0.0,
) -> None:
    """Paint `peaks` (minimum and maximum sample of equal intervals, −1 to 1) from edge to edge; the first
    `played_fraction` of them in `played_color`.
    """
    if not peaks or rect.width() < 1:
        return
    columns = max(1, int(rect.width()))
    pen = QPen(color, 1)
    painter.setPen(pen)
    for column in range(columns):
        first = column * len(peaks) // columns
        stretch = peaks[first : max(first + 1, (column + 1) * len(peaks) // columns)]
        low, high = min(part[0] for part in stretch), max(part[1] for part in stretch)
        is_before = played_color is not None and column < played_fraction * columns
        painter.setPen(QPen(played_color, 1) if played_color is not None and is_before else pen)
        _paint_sample_bar(painter, rect, rect.left() + column + 0.5, low, high)


def _paint_sample_bar(painter: QPainter, rect: QRectF, x: float, low: float, high: float) -> None:
    middle, half = rect.center().y(), rect.height() / 2
    top, foot = middle - max(high, _MIN_AMPLITUDE) * half, middle - min(low, -_MIN_AMPLITUDE) * half
    painter.drawLine(QPointF(x, top), QPointF(x, foot))


def image_from_rgb(width: int, height: int, rgb: bytes) -> QImage:
    """Return an image of `width` × `height` pixels from RGB bytes."""
    return QImage(rgb, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


def fit_rect(width: float, height: float, rect: QRectF) -> QRectF:
    """Return the largest rectangle of that aspect ratio, centred in `rect`."""
    if width <= 0 or height <= 0:
        return QRectF(rect)
    scale = min(rect.width() / width, rect.height() / height)
    fitted = QRectF(0, 0, width * scale, height * scale)
    fitted.moveCenter(rect.center())
    return fitted


def paint_picture(painter: QPainter, into: QRectF, image: QImage) -> QRectF:
    """Paint `image` as large as fits, with visible pixels if it is small, and return its rectangle."""
    rect = fit_rect(image.width(), image.height(), into)
    grows = rect.width() > 2 * image.width()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not grows)
    painter.drawImage(rect, image)
    return rect


def paint_frame(painter: QPainter, around: QRectF, color: QColor, radius: float = 4.0) -> None:
    """Paint a thin frame around an image or a waveform."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color, 1))
    painter.drawRoundedRect(around.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)


WIDTH, HEIGHT = 84, 44
"""Return the height of a plot in pixels at 100 %."""


class MediumThumbnail(Themed, QWidget):
    """A waveform or a thumbnail; grey until loaded. It has no accessible text, because its card has."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._peaks: Peaks = ()
        self._image: QImage | None = None
        self._played = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_sound(self, peaks: Peaks) -> None:
        """Show a waveform."""
        self._peaks, self._image = peaks, None
        self.update()

    def show_picture(self, image: QImage) -> None:
        """Show a thumbnail."""
        self._peaks, self._image = (), image
        self.update()

    def set_played_fraction(self, fraction: float) -> None:
        """Set the played fraction of the audio, 0 to 1."""
        self._played = fraction
        self.update()

    def restyle(self, theme: Theme) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        """Return the same size for all cards. It grows less than the type, which needs the room."""
        return QSize(self._theme.space(WIDTH), self._theme.space(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("field"))
        painter.drawRoundedRect(ground, 4, 4)
        painter.setOpacity(1.0 if self.isEnabled() else 0.4)
        inner = ground.adjusted(3, 3, -3, -3)
        if self._image is not None:
            paint_picture(painter, inner, self._image)
        elif self._peaks:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            color = theme.color("finished" if self.isEnabled() else "faint")
            paint_waveform(painter, inner, self._peaks, color, theme.color("best"), self._played)
        painter.setOpacity(1.0)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_frame(painter, ground, theme.color("line"))


PICTURE_SIDE, SOUND_WIDTH, SOUND_HEIGHT = 96, 260, 52
"""Return the height of a plot in pixels at 100 %."""
_MIN_MARK_DISTANCE = 3.0
"""Minimum distance between marks below a waveform, in pixels. Denser positions have every second, third … marked."""


class PositionCells(NamedTuple):
    """Division into positions: `rows` × `columns` over an image, `columns` along audio, of which the last may be after
    its end.
    """

    rows: int = 1
    columns: int = 1
    file_fraction: float = 1.0
    """Fraction of the width that the file covers: less than 1 if the model pads it with silence."""


class MediumPositions(Themed, QWidget):
    """Emits `cellHovered(i)` for the cell under the pointer, counted row by row; −1 for none."""

    cellHovered = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._peaks: Peaks = ()
        self._image: QImage | None = None
        self.cells = PositionCells()
        self.hovered_cell = -1
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_sound(self, peaks: Peaks, cells: PositionCells) -> None:
        """Show a waveform with marks below it."""
        self._peaks, self._image, self.cells = peaks, None, cells
        self._reset_size()

    def show_picture(self, image: QImage | None, cells: PositionCells) -> None:
        """Show an image below a grid; None while it is loading."""
        self._peaks, self._image, self.cells = (), image, cells
        self._reset_size()

    def restyle(self, theme: Theme) -> None:
        self._reset_size()

    def sizeHint(self) -> QSize:
        """Return the size: images keep their aspect ratio, audio is a band."""
        space = self._theme.space
        if self._peaks:
            return QSize(space(SOUND_WIDTH), space(SOUND_HEIGHT))
        side = space(PICTURE_SIDE)
        if self._image is None:
            return QSize(side, side)
        return fit_rect(self._image.width(), self._image.height(), QRectF(0, 0, side, side)).size().toSize()

    def cell_rect(self, cell: int) -> QRectF:
        """Return the rectangle of a cell."""
        row, column = divmod(cell, self.cells.columns)
        inner = self._inner()
        width, height = inner.width() / self.cells.columns, inner.height() / self.cells.rows
        return QRectF(inner.left() + column * width, inner.top() + row * height, width, height)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered_cell(self._cell_at(event.position()))

    def leaveEvent(self, event: object) -> None:
        self._set_hovered_cell(-1)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, painter = self._theme, QPainter(self)
        painter.fillRect(self.rect(), theme.color("field"))
        if self._image is not None:
            paint_picture(painter, self._inner(), self._image)
            self._paint_grid(painter)
        elif self._peaks:
            self._paint_sound(painter)
        if self.hovered_cell >= 0:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.color("accent"), max(2.0, theme.space(2))))
            painter.drawRect(self.cell_rect(self.hovered_cell))
        paint_frame(painter, QRectF(self.rect()), theme.color("line"), 2.0)

    def _inner(self) -> QRectF:
        return QRectF(self.rect())

    def _paint_grid(self, painter: QPainter) -> None:
        """Paint grid lines that are visible on light and dark images."""
        inner = self._inner()
        for color, shift in ((self._theme.color("panel"), 0.0), (self._theme.color("muted"), 1.0)):
            color.setAlphaF(0.35)
            painter.setPen(QPen(color, 1))
            for column in range(1, self.cells.columns):
                x = round(inner.left() + column * inner.width() / self.cells.columns) + 0.5 - shift
                painter.drawLine(QPointF(x, inner.top()), QPointF(x, inner.bottom()))
            for row in range(1, self.cells.rows):
                y = round(inner.top() + row * inner.height() / self.cells.rows) + 0.5 - shift
                painter.drawLine(QPointF(inner.left(), y), QPointF(inner.right(), y))

    def _paint_sound(self, painter: QPainter) -> None:
        theme, inner = self._theme, self._inner()
        foot = theme.space(6)
        file_area = QRectF(inner.left(), inner.top(), inner.width() * self.cells.file_fraction, inner.height() - foot)
        paint_waveform(painter, file_area.adjusted(0, 3, 0, -3), self._peaks, theme.color("finished"))
        step = inner.width() / self.cells.columns
        each = max(1, -int(-_MIN_MARK_DISTANCE // step)) if step < _MIN_MARK_DISTANCE else 1
        painter.setPen(QPen(theme.color("faint"), 1))
        for column in range(0, self.cells.columns, each):
            x = round(inner.left() + column * step) + 0.5
            painter.drawLine(QPointF(x, inner.bottom() - foot), QPointF(x, inner.bottom() - 1))

    def _cell_at(self, point: QPointF) -> int:
        inner = self._inner()
        if not inner.contains(point) or (self._image is None and not self._peaks):
            return -1
        column = int((point.x() - inner.left()) / inner.width() * self.cells.columns)
        row = int((point.y() - inner.top()) / inner.height() * self.cells.rows)
        return min(row, self.cells.rows - 1) * self.cells.columns + min(column, self.cells.columns - 1)

    def _set_hovered_cell(self, cell: int) -> None:
        if cell != self.hovered_cell:
            self.hovered_cell = cell
            self.cellHovered.emit(cell)
            self.update()

    def _reset_size(self) -> None:
        self.hovered_cell = -1
        self.setFixedSize(self.sizeHint())
        self.update()
