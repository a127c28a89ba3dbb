"""Overlays: drop target, keyboard focus ring, and spotlight."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import set_up

MARGIN, TEXT_WIDTH = 24, 560
"""Pixels at 100 %: margin around the frame, and width of the text."""


class DropOverlay(Themed, QWidget):
    """Covers its parent. The frame is solid if the drop is accepted, dashed otherwise."""

    def __init__(self, parent_window: QWidget) -> None:
        super().__init__(parent_window)
        self.setObjectName("dropOverlay")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.title = self.detail = ""
        self.is_accepted = False
        self.hide()

    def show_drop_effect(self, title: str, detail: str, is_accepted: bool) -> None:
        """Show what a drop would do."""
        self.title, self.detail, self.is_accepted = title, detail, is_accepted
        set_up(self, accessible_name=title, description=detail)
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
        title_font, detail_font = theme.font(22), theme.font(13)
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


_POINTER_REASONS = (Qt.FocusReason.MouseFocusReason, Qt.FocusReason.PopupFocusReason)
WIDTH = 2


class FocusRing(Themed, QWidget):
    """Frame around `target`, visible while that has the focus by keyboard, not by mouse."""

    def __init__(self, target: QWidget) -> None:
        super().__init__(target)
        self._target = target
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        target.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show, hide and resize together with the target."""
        if watched is not self._target:
            return False
        if isinstance(event, QFocusEvent):
            self.setVisible(event.gotFocus() and event.reason() not in _POINTER_REASONS)
            self.raise_()
        if event.type() in (QEvent.Type.Resize, QEvent.Type.FocusIn):
            self.setGeometry(self._target.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the ring just inside the edge."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = WIDTH * self._theme.scale
        painter.setPen(QPen(self._theme.color("accent"), width))
        inset = round(width)
        painter.drawRoundedRect(self.rect().adjusted(inset, inset, -inset, -inset), 4, 4)


DIM_OPACITY = 0.3
"""Opacity of the dimming; text below it stays readable."""
GAP, RING, CORNER_RADIUS = 4, 3, 7
"""Pixels at 100 %: gap between rectangle and ring, width of the ring, its corner radius."""


class SpotlightOverlay(Themed, QWidget):
    """Cover of `target` that ignores the mouse. `target_rect()` returns the lit rectangle in the target's
    coordinates.
    """

    def __init__(self, target: QWidget, theme: Theme) -> None:
        super().__init__(target)
        self._target, self._theme = target, theme
        self.target_rect: Callable[[], QRect] = QRect
        self.setObjectName("spotlight")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setGeometry(target.rect())
        target.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the target's size and stay above its children."""
        if watched is self._target and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._target.rect())
        if watched is self._target and event.type() == QEvent.Type.ChildAdded:
            self.raise_()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Dim everything except the rectangle; paint nothing if it is empty."""
        target = self.target_rect()
        if target.isEmpty():
            return
        theme, gap = self._theme, self._theme.px(GAP)
        hole = QRectF(target.adjusted(-gap, -gap, gap, gap))
        path = QPainterPath()
        path.addRoundedRect(hole, theme.px(CORNER_RADIUS), theme.px(CORNER_RADIUS))
        around = QPainterPath()
        around.addRect(QRectF(self.rect()))
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillPath(around.subtracted(path), theme.color("window", DIM_OPACITY))
        painter.setPen(QPen(theme.color("best"), theme.px(RING)))
        modes = QPainter.CompositionMode  # letters that the ring touches stay above it
        painter.setCompositionMode(modes.CompositionMode_Lighten if theme.is_dark else modes.CompositionMode_Darken)
        painter.drawPath(path)
