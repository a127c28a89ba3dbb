"""The face of a sound or a picture on a card."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.media.drawing import Peaks, paint_frame, paint_picture, paint_waveform

WIDTH, HEIGHT = 84, 44
"""Pixels at 100 %."""


class MediumThumbnail(QWidget):
    """A waveform or a thumbnail; grey while it is neither. Says nothing itself: its card does."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._peaks: Peaks = ()
        self._image: QImage | None = None
        self._played = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_sound(self, peaks: Peaks) -> None:
        """Draw a waveform."""
        self._peaks, self._image = peaks, None
        self.update()

    def show_picture(self, image: QImage) -> None:
        """Draw a thumbnail."""
        self._peaks, self._image = (), image
        self.update()

    def set_played_fraction(self, fraction: float) -> None:
        """So much of the sound has been heard, 0 to 1."""
        self._played = fraction
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.setFixedSize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        """The same for all, so that cards stand in line; grows less than type does, which needs the room."""
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
