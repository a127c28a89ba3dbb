"""A sound as a waveform, a picture as a thumbnail, painted into a rectangle."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

Peaks = Sequence[tuple[float, float]]
_MIN_AMPLITUDE = 0.02
"""Of the height: what is drawn where nothing is heard, so that the line does not break."""


def paint_waveform(
    painter: QPainter,
    into: QRectF,
    peaks: Peaks,
    color: QColor,
    played_color: QColor | None = None,
    played_fraction: float = 0.0,
) -> None:
    """Draw `peaks` (lowest and highest sample of equal stretches, −1 to 1) from edge to edge; the first share `played_fraction`
    of them in the colour `played_color`."""
    if not peaks or into.width() < 1:
        return
    columns = max(1, int(into.width()))
    pen = QPen(color, 1)
    painter.setPen(pen)
    for column in range(columns):
        first = column * len(peaks) // columns
        stretch = peaks[first : max(first + 1, (column + 1) * len(peaks) // columns)]
        low, high = min(part[0] for part in stretch), max(part[1] for part in stretch)
        is_before = played_color is not None and column < played_fraction * columns
        painter.setPen(QPen(played_color, 1) if played_color is not None and is_before else pen)
        _paint_sample_bar(painter, into, into.left() + column + 0.5, low, high)


def _paint_sample_bar(painter: QPainter, into: QRectF, x: float, low: float, high: float) -> None:
    middle, half = into.center().y(), into.height() / 2
    top, foot = middle - max(high, _MIN_AMPLITUDE) * half, middle - min(low, -_MIN_AMPLITUDE) * half
    painter.drawLine(QPointF(x, top), QPointF(x, foot))


def image_from_rgb(width: int, height: int, rgb: bytes) -> QImage:
    """An image of `width` × `height` pixels from three bytes each."""
    return QImage(rgb, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


def fit_rect(width: float, height: float, into: QRectF) -> QRectF:
    """The largest rectangle of that shape in the middle of `into`."""
    if width <= 0 or height <= 0:
        return QRectF(into)
    scale = min(into.width() / width, into.height() / height)
    fitted = QRectF(0, 0, width * scale, height * scale)
    fitted.moveCenter(into.center())
    return fitted


def paint_picture(painter: QPainter, into: QRectF, image: QImage) -> QRectF:
    """Draw `image` as large as `into` has room for, whole; small ones with their pixels to be seen. Where it lies."""
    rect = fit_rect(image.width(), image.height(), into)
    grows = rect.width() > 2 * image.width()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not grows)
    painter.drawImage(rect, image)
    return rect


def paint_frame(painter: QPainter, around: QRectF, color: QColor, radius: float = 4.0) -> None:
    """A thin line around a picture or a sound."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color, 1))
    painter.drawRoundedRect(around.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
