"""The one primary button: Run, and in the same place Stop."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.theme.theme import Theme
from app.widgets import icons
from app.widgets.plain_text import tooltip
from resources.language import mark, tr

RUN_BUTTON_MODES = {
    "run": ("play", mark("Run"), "Ctrl ↵"),
    "stop": ("stop", mark("Stop"), "Esc"),
    "stopping": ("stop", mark("Stopping…"), ""),
}


class RunButton(QPushButton):
    """Icon, word and key in one button of constant width, so that nothing beside it moves."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "primary")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._theme: Theme | None = None
        self._face = ""
        self._is_compact = False
        self.set_mode("run")

    @property
    def mode(self) -> str:
        """`run`, `stop` or `stopping`."""
        return self._face

    @Slot(str)
    def set_mode(self, face: str) -> None:
        """Show one of FACES; while stopping it cannot be pressed."""
        if face == self._face:
            return
        self._face = face
        _icon, word, key = RUN_BUTTON_MODES[face]
        name = tr(word)
        self.setAccessibleName(name)
        self.setToolTip(tooltip(f"{name} ({key})" if key else name))
        self.setEnabled(face != "stopping")
        self.update()

    def set_compact(self, brief: bool) -> None:
        """Leave the key to the tip, where there is little room."""
        if brief != self._is_compact:
            self._is_compact = brief
            self.updateGeometry()
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        if self._theme is None:
            return QSize(124, 34)
        return QSize(max(map(self._mode_width, RUN_BUTTON_MODES)), self._theme.px(34))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _mode_parts(self, face: str) -> tuple[str, str, str]:
        """Icon, word and key of a face, the key empty where it is left to the tip."""
        name, word, key = RUN_BUTTON_MODES[face]
        return name, tr(word), "" if self._is_compact else key

    def _mode_width(self, face: str) -> int:
        """Width that a face needs."""
        assert self._theme is not None
        _name, word, key = self._mode_parts(face)
        words = QFontMetrics(self._theme.font(13, 600)).horizontalAdvance(word)
        keys = QFontMetrics(self._theme.font(11)).horizontalAdvance(key) + self._theme.px(7) if key else 0
        return self._theme.px(12) + self._theme.px(7) + words + keys + 2 * self._theme.space(14)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)  # a button without words
        if self._theme is not None:
            self._paint_face(QPainter(self), self._theme)

    def _paint_face(self, painter: QPainter, theme: Theme) -> None:
        name, word, key = self._mode_parts(self._face)
        color = theme.on_accent if self.isEnabled() else theme.muted
        fonts = (theme.font(13, 600), theme.font(11))
        gap, side = theme.px(7), theme.px(12)
        widths = [side, *(self._advance(painter, font, text) for font, text in zip(fonts, (word, key), strict=True))]
        x = (self.width() - sum(widths) - gap * (1 + bool(key))) / 2
        icons.paint_icon(painter, name, color, QRectF(x, (self.height() - side) / 2, side, side))
        painter.setPen(color)
        for font, text, width in zip(fonts, (word, key), widths[1:], strict=True):
            x += gap + (widths[0] if text == word else widths[1])
            painter.setFont(font)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            painter.setOpacity(0.8)

    @staticmethod
    def _advance(painter: QPainter, font: QFont, text: str) -> int:
        painter.setFont(font)
        return painter.fontMetrics().horizontalAdvance(text)
