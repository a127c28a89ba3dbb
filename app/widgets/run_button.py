"""The one primary button: Run, and in the same place Stop."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QStyle, QStyleOptionButton, QWidget

from app.theme.theme import Theme
from app.widgets import icons

FACES = {
    "run": ("play", "Run", "Ctrl ↵"),
    "stop": ("stop", "Stop", "Esc"),
    "stopping": ("stop", "Stopping…", ""),
}


class RunButton(QPushButton):
    """Icon, word and key in one button of constant width, so that nothing beside it moves."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "primary")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._theme: Theme | None = None
        self._face = ""
        self.set_face("run")

    @property
    def face(self) -> str:
        """`run`, `stop` or `stopping`."""
        return self._face

    def set_face(self, face: str) -> None:
        """Show one of FACES; while stopping it cannot be pressed."""
        if face == self._face:
            return
        self._face = face
        _icon, word, key = FACES[face]
        self.setAccessibleName(word)
        self.setToolTip(f"{word} ({key})" if key else word)
        self.setEnabled(face != "stopping")
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(124), self._theme.px(34)) if self._theme else QSize(124, 34)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        painter = QPainter(self)
        self.style().drawControl(QStyle.ControlElement.CE_PushButtonBevel, option, painter, self)
        if self._theme is not None:
            self._paint_face(painter, self._theme)

    def _paint_face(self, painter: QPainter, theme: Theme) -> None:
        name, word, key = FACES[self._face]
        color = theme.on_accent if self.isEnabled() else theme.muted
        fonts = (theme.font(13, 600), theme.font(11))
        gap, side = theme.px(7), theme.px(12)
        widths = [side, *(self._advance(painter, font, text) for font, text in zip(fonts, (word, key), strict=True))]
        x = (self.width() - sum(widths) - gap * (1 + bool(key))) / 2
        icons.paint(painter, name, color, QRectF(x, (self.height() - side) / 2, side, side))
        painter.setPen(color)
        for font, text, width in zip(fonts, (word, key), widths[1:], strict=True):
            x += gap + (widths[0] if text == word else widths[1])
            painter.setFont(font)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            painter.setOpacity(0.8)

    @staticmethod
    def _advance(painter: QPainter, font: object, text: str) -> int:
        painter.setFont(font)  # type: ignore[arg-type]
        return painter.fontMetrics().horizontalAdvance(text)
