"""A layout that fills lines from the left and wraps them like words."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QWidget


def delete_widget(widget: QWidget) -> None:
    """Remove a widget from its parent and delete it later."""
    widget.hide()  # a layout may be about to show it, and without a parent it would become a window
    widget.setParent(None)
    widget.deleteLater()


class FlowLayout(QLayout):
    """Children keep their size hints; a line wraps where the next child would not fit."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 6) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(QMargins(0, 0, 0, 0))

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._lay_out(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._lay_out(rect, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        """Return the height of one child and no width: children that are too wide are made narrower."""
        return QSize(0, max((item.minimumSize().height() for item in self._items), default=0))

    def _lay_out(self, rect: QRect, move: bool) -> int:
        """Lay out the children in `rect` and return the height used."""
        x, y, line = rect.x(), rect.y(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            hint = item.sizeHint()
            width = min(hint.width(), rect.width())
            if x > rect.x() and x + width > rect.right() + 1:
                x, y, line = rect.x(), y + line + self.spacing(), 0
            if move:
                item.setGeometry(QRect(QPoint(x, y), QSize(width, hint.height())))
            x, line = x + width + self.spacing(), max(line, hint.height())
        return y + line - rect.y()


class FlowRow(QWidget):
    """A widget with a flow layout (`flow.addWidget`); its height follows from its width."""

    def __init__(self, parent: QWidget | None = None, spacing: int = 6) -> None:
        super().__init__(parent)
        self.flow = FlowLayout(self, spacing)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self) -> QSize:
        """Return the height of all lines at the current width, so that a page does not reserve one line per child."""
        return QSize(0, self.flow.heightForWidth(max(self.width(), 1)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the height to the new width."""
        super().resizeEvent(event)
        self.updateGeometry()


def clear_layout(layout: QLayout) -> None:
    """Remove and delete all items of `layout`."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            delete_widget(widget)
