"""Lies over the window while something is dragged over it: what a drop will do, or why it does nothing."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.theme.theme import Theme, theme_for

MARGIN, TEXT_WIDTH = 24, 560
"""Pixels at 100 %: around the frame, and the width of the words."""


class DropOverlay(QWidget):
    """As large as the part it lies over. A solid frame where the drop is taken, a dashed one where it is not."""

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self.setObjectName("dropOverlay")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._theme = theme_for("light")
        self.title = self.detail = ""
        self.is_accepted = False
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self.update()

    def show_drop_effect(self, title: str, detail: str, is_accepted: bool) -> None:
        """Show what a drop does."""
        self.title, self.detail, self.is_accepted = title, detail, is_accepted
        self.setAccessibleName(title)
        self.setAccessibleDescription(detail)
        parent = self.parentWidget()
        if parent is not None:
            self.setGeometry(parent.rect())
        self.show()
        self.raise_()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QColor(theme.panel)
        ground.setAlpha(235)
        painter.fillRect(self.rect(), ground)
        margin = theme.px(MARGIN)
        pen = QPen(QColor(theme.accent if self.is_accepted else theme.muted))
        pen.setWidth(theme.px(3) if self.is_accepted else theme.px(2))
        if not self.is_accepted:
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        frame = QRectF(self.rect()).adjusted(margin, margin, -margin, -margin)
        painter.drawRoundedRect(frame, theme.px(12), theme.px(12))
        self._paint_words(painter, frame)

    def _paint_words(self, painter: QPainter, frame: QRectF) -> None:
        theme = self._theme
        width = min(frame.width() - 2 * theme.px(MARGIN), theme.px(TEXT_WIDTH))
        flags = Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap
        room = QRectF(frame.center().x() - width / 2, 0, width, frame.height())
        title_font, detail_font = theme.font(22), theme.font(14)
        painter.setFont(title_font)
        title = painter.boundingRect(room, flags, self.title)
        painter.setFont(detail_font)
        detail = painter.boundingRect(room, flags, self.detail)
        top = frame.center().y() - (title.height() + theme.px(10) + detail.height()) / 2
        words = QRectF(room.left(), top, width, title.height() + theme.px(10) + detail.height())
        side = theme.px(MARGIN)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.panel))
        painter.drawRoundedRect(words.adjusted(-side, -side, side, side), theme.px(12), theme.px(12))
        painter.setFont(title_font)
        painter.setPen(QColor(theme.text))
        painter.drawText(room.translated(0, top), flags, self.title)
        painter.setFont(detail_font)
        painter.setPen(QColor(theme.muted))
        painter.drawText(room.translated(0, top + title.height() + theme.px(10)), flags, self.detail)
