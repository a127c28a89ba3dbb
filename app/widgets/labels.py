"""Labels that elide, wrap, scroll, or keep their height while their text changes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QPlainTextEdit, QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.plain_text import PlainLabel, RichLabel


class ElidedLabel(PlainLabel):
    """Shows as much of `text()` as fits, with an ellipsis."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance("…") + 2, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        QFrame.paintEvent(self, event)
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.contentsRect().width())
        QPainter(self).drawText(self.contentsRect(), self.alignment(), shown)


class WrappedLabel(PlainLabel):
    """A plain text label with a fixed height. Nested layouts lose Qt's height for width, but keep a fixed height."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, wordWrap=True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def hasHeightForWidth(self) -> bool:
        """Return False, because the height is fixed."""
        return False

    def sizeHint(self) -> QSize:
        """Return the size of the text on one line."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 2, metrics.height())

    def minimumSizeHint(self) -> QSize:
        """Return a small width."""
        return QSize(0, self.fontMetrics().height())

    def setText(self, text: str) -> None:
        """Replace the text and update the height."""
        super().setText(text)
        self._update_height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._update_height()

    def _update_height(self) -> None:
        room = QRect(0, 0, max(1, self.width()), 10_000)
        height = self.fontMetrics().boundingRect(room, Qt.TextFlag.TextWordWrap, self.text()).height()
        if height != self.minimumHeight():
            self.setFixedHeight(height)


class DetailsText(QPlainTextEdit):
    """Shows the output of a program or a traceback, whose long lines scroll instead of being wrapped or clipped."""

    MAX_LINES = 12

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, readOnly=True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)

    def text(self) -> str:
        """Return the text."""
        return self.toPlainText()

    def setText(self, text: str) -> None:
        """Replace the text. The height fits up to `MAX_LINES` lines."""
        self.setPlainText(text)
        self._update_height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._update_height()

    def _update_height(self) -> None:
        around = 2 * (self.frameWidth() + round(self.document().documentMargin()))
        lines = min(self.document().blockCount(), self.MAX_LINES)
        bar = self.horizontalScrollBar().sizeHint().height()
        self.setMaximumHeight(lines * self.fontMetrics().lineSpacing() + around + bar)
        self.setMinimumHeight(min(self.maximumHeight(), 3 * self.fontMetrics().lineSpacing() + around + bar))


class TextBlock(QWidget):
    """A wrapped label. A plain QLabel would trigger a new layout on every change of its text."""

    def __init__(self, parent: QWidget | None = None, role: str = "", rich: bool = False) -> None:
        super().__init__(parent)
        self.label = RichLabel("", self) if rich else PlainLabel(self)
        self.label.setWordWrap(True)
        flags = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        self.label.setTextInteractionFlags(flags)
        self.label.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        if role:
            self.label.setProperty("role", role)
        self._min_height = self._height = 0
        self._heights: dict[tuple[int, str], int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def text(self) -> str:
        """Return the text."""
        return self.label.text()

    def set_text(self, text: str) -> None:
        """Replace the text."""
        if text == self.label.text():
            return
        self.label.setText(text)
        self._heights.clear()
        self._update_height()

    def set_min_text_height(self, pixels: int) -> None:
        """Reserve a minimum height, so that shorter texts move nothing."""
        if pixels != self._min_height:
            self._min_height = pixels
            self._update_height()

    def refit(self) -> None:
        """Measure again after a change of font."""
        self._height = -1
        self._heights.clear()
        self._update_height()

    def _update_height(self) -> None:
        height = self.heightForWidth(self.width())
        if height != self._height:
            self._height = height
            self.updateGeometry()

    def heightForWidth(self, width: int) -> int:
        """Return the height of the wrapped text, at least the minimum. Cached, because layouts query the same width
        repeatedly.
        """
        key = width, self.label.font().key()
        if key not in self._heights:
            self._heights[key] = self.label.heightForWidth(max(1, width))
        return max(self._min_height, self._heights[key])

    def sizeHint(self) -> QSize:
        """Return a width for a few words."""
        return QSize(120, self.heightForWidth(max(120, self.width())))

    def minimumSizeHint(self) -> QSize:
        """Return a small width."""
        return QSize(60, self._min_height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Resize the label with the widget."""
        self.label.setGeometry(self.rect())
        super().resizeEvent(event)


def paint_empty_text(area: QAbstractScrollArea, theme: Theme) -> None:
    """Paint the accessible description of an empty list or table in its middle."""
    margin = area.fontMetrics().height()
    painter = QPainter(area.viewport())
    painter.setPen(theme.color("muted"))
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
    room = area.viewport().rect().adjusted(margin, margin, -margin, -margin)
    painter.drawText(room, flags, area.accessibleDescription())
