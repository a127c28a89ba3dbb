"""One way in: a large button with an icon, a title and a sentence."""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from app.theme.theme import Theme
from app.widgets import icons

SIDE, ABOVE, ICON, GAP, BETWEEN, RADIUS = 18, 14, 22, 16, 3, 10
"""Pixels at 100 %: empty room inside, the icon, what is between the parts."""
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1}


class WelcomeButton(QPushButton):
    """As high as its sentence takes at its width; arrow keys go to the next one."""

    def __init__(self, name: str, icon: str, title: str, about: str, parent: QWidget) -> None:
        super().__init__(title, parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setAccessibleDescription(about)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._icon, self._about = icon, about
        self._theme: Theme | None = None

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self._theme = theme
        self._refit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(320, self.minimumHeight())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses it too."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif (by := _STEPS.get(Qt.Key(event.key()))) is not None:
            self._focus_neighbour(by)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_background(painter, self._theme)
        self._paint_texts(painter, self._theme)

    def _paint_background(self, painter: QPainter, theme: Theme) -> None:
        lively = self.underMouse() or self.isDown()
        focused = self.hasFocus()
        painter.setPen(QPen(theme.color("accent" if focused else "line"), 2 if focused else 1))
        painter.setBrush(theme.color("tint" if focused else "hover" if lively else "panel"))
        radius = theme.px(RADIUS)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)

    def _paint_texts(self, painter: QPainter, theme: Theme) -> None:
        side, top, room = theme.px(ICON), theme.space(ABOVE), self._text_rect(theme)
        icons.paint_icon(painter, self._icon, theme.accent, QRectF(theme.space(SIDE), top, side, side))
        title = theme.font(15, 600)
        height = QFontMetrics(title).lineSpacing()
        painter.setFont(title)
        painter.setPen(theme.color("text"))
        painter.drawText(QRect(room.left(), top, room.width(), height), Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("muted"))
        below = top + height + theme.px(BETWEEN)
        rest = QRect(room.left(), below, room.width(), self.height() - below)
        painter.drawText(rest, int(Qt.TextFlag.TextWordWrap), self._about)

    def _text_rect(self, theme: Theme) -> QRect:
        """Where words stand, as high as may be."""
        left = theme.space(SIDE) + theme.px(ICON) + theme.px(GAP)
        return QRect(left, 0, max(1, self.width() - left - theme.space(SIDE)), 10_000)

    def _refit(self) -> None:
        if self._theme is None:
            return
        theme = self._theme
        metrics = QFontMetrics(theme.font(13))
        about = metrics.boundingRect(self._text_rect(theme), int(Qt.TextFlag.TextWordWrap), self._about).height()
        title = QFontMetrics(theme.font(15, 600)).lineSpacing()
        height = 2 * theme.space(ABOVE) + title + theme.px(BETWEEN) + about
        if height != self.minimumHeight():
            self.setFixedHeight(height)

    def _focus_neighbour(self, by: int) -> None:
        page = self.parentWidget()
        ways = page.findChildren(WelcomeButton) if page is not None else [self]
        ways[(ways.index(self) + by) % len(ways)].setFocus(Qt.FocusReason.TabFocusReason)
