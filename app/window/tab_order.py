"""The way that Tab takes: from panel to panel as they are worked with, inside each as it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

LINE = 10
"""Pixels by which the middles of widgets may differ that stand on one line."""


class TabOrder:
    """Asked at every press, for panels change: `panels()` are those of the window, the first one first."""

    def __init__(self, window: QWidget, panels: Callable[[], Sequence[QWidget]]) -> None:
        self._window, self._panels = window, panels

    def stops(self) -> list[QWidget]:
        """Every widget that Tab comes to, in order."""
        panels = self._panels()
        found: list[list[QWidget]] = [[] for _ in panels]
        taking = [widget for widget in self._window.findChildren(QWidget) if self._takes_focus(widget)]
        for widget in taking:
            place = _place(widget, panels)
            if place is not None and not _only_scrolls(widget, taking):
                found[place].append(widget)
        return [widget for widgets in found for widget in self._as_read(widgets)]

    def go(self, forwards: bool) -> bool:
        """Take the focus to the next stop, or the one before; around at either end. False where there is none."""
        stops, here = self.stops(), self._window.focusWidget()
        if not stops:
            return False
        if here in stops:
            place = (stops.index(here) + (1 if forwards else -1)) % len(stops)
        else:
            place = 0 if forwards else -1
        reason = Qt.FocusReason.TabFocusReason if forwards else Qt.FocusReason.BacktabFocusReason
        stops[place].setFocus(reason)
        _bring_into_sight(stops[place])
        return True

    def _takes_focus(self, widget: QWidget) -> bool:
        policy = Qt.FocusPolicy.TabFocus
        return (
            widget.focusPolicy() & policy == policy
            and widget.focusProxy() is None
            and widget.isEnabled()
            and widget.isVisible()
            and widget.window() is self._window
        )

    def _as_read(self, widgets: Sequence[QWidget]) -> list[QWidget]:
        """Line by line, each from its beginning."""
        places = {widget: _middle(widget, self._window) for widget in widgets}
        lines: list[list[QWidget]] = []
        for widget in sorted(widgets, key=lambda widget: places[widget].y()):
            if not lines or places[widget].y() - places[lines[-1][0]].y() > LINE:
                lines.append([])
            lines[-1].append(widget)
        return [widget for line in lines for widget in sorted(line, key=lambda widget: places[widget].x())]


def _place(widget: QWidget, panels: Sequence[QWidget]) -> int | None:
    """Which panel it belongs to: the first that it is, or is in."""
    return next((n for n, panel in enumerate(panels) if panel.isAncestorOf(widget)), None)


def _only_scrolls(widget: QWidget, others: Sequence[QWidget]) -> bool:
    """A page of things that take the focus themselves: each of them brings itself into sight."""
    return isinstance(widget, QScrollArea) and any(
        other is not widget and widget.isAncestorOf(other) for other in others
    )


def _middle(widget: QWidget, window: QWidget) -> QPoint:
    """Where it stands in the window, or would if nothing were scrolled: scrolling changes no order."""
    place, above = widget.mapTo(window, widget.rect().center()), widget.parentWidget()
    while above is not None:
        if isinstance(above, QScrollArea):
            place += QPoint(above.horizontalScrollBar().value(), above.verticalScrollBar().value())
        above = above.parentWidget()
    return place


def _bring_into_sight(widget: QWidget) -> None:
    """Scroll what it stands on."""
    above = widget.parentWidget()
    while above is not None:
        content = above.widget() if isinstance(above, QScrollArea) else None
        if isinstance(above, QScrollArea) and content is not None:
            place = widget.mapTo(content, QPoint(0, 0))
            above.ensureVisible(place.x(), place.y() + widget.height() // 2, 0, widget.height())
        above = above.parentWidget()
