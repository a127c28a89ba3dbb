"""A scroll area whose lowest row is never cut: a row that does not fit completely is covered until it does."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QObject, QTimer, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QAbstractSpinBox, QFrame, QWidget

from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.inputs import ScrollArea

MAX_COVERED = 0.3
"""Largest part of the height that is covered; a higher row is cut rather than hidden."""


class RowScrollArea(ScrollArea):
    """Covers the part of a row that would be cut at the lower edge.

    Rows are the widgets with the property `row`, and the innermost widgets of the others: labels, editors, buttons.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, widgetResizable=True)
        self._cover = set_up(QFrame(self.viewport()), name="scrollCover", role="panel")
        self._cover.hide()
        self._timer = QTimer(self, singleShot=True, interval=0)
        self._timer.timeout.connect(self._place_cover)
        self.verticalScrollBar().valueChanged.connect(self._place_cover)
        self.verticalScrollBar().rangeChanged.connect(self._place_soon)

    def setWidget(self, widget: QWidget) -> None:
        super().setWidget(widget)
        widget.installEventFilter(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the cover after the content was laid out."""
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._timer.start()
        return super().eventFilter(watched, event)

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Scroll to what Tab focuses, but not to what gets the focus because its widget was disabled or hidden."""
        before: QWidget | None = self.focusWidget()
        place = self.verticalScrollBar().value()
        done = super().focusNextPrevChild(forwards)
        if before is not None and (before.isHidden() or not before.isEnabled()):
            self.verticalScrollBar().setValue(place)
        return done

    @property
    def fold(self) -> int:
        """Lower end of what is visible, in pixels from the top of the viewport."""
        return self.viewport().height() - (0 if self._cover.isHidden() else self._cover.height())

    @Slot()
    def _place_soon(self) -> None:
        self._timer.start()

    @Slot()
    def _place_cover(self) -> None:
        content, height = self.widget(), self.viewport().height()
        if content is None:
            return
        offset = -content.y()
        edge = offset + height
        spans = sorted(
            (part.mapTo(content, part.rect().topLeft()).y(), part.mapTo(content, part.rect().bottomLeft()).y() + 1)
            for part in _rows(content)
        )
        fold = edge
        for top, bottom in reversed(spans):
            if top < fold < bottom:
                fold = top
        covered = edge - fold
        is_covered = 0 < covered <= height * MAX_COVERED
        self._cover.setGeometry(0, height - covered, self.viewport().width(), covered)
        self._cover.setVisible(is_covered)
        self._cover.raise_()


def _rows(part: QWidget) -> Iterator[QWidget]:
    """Yield the visible rows within `part`."""
    for child in part.children():
        if not isinstance(child, QWidget) or child.isWindow() or not child.isVisible():
            continue
        is_whole = child.property("row") or isinstance(child, QAbstractScrollArea | QAbstractSpinBox | QAbstractButton)
        inner = () if is_whole else tuple(_rows(child))
        yield from inner or (child,)
