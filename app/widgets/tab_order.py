"""Tab order: from panel to panel in order of work, inside each in reading order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

LINE_TOLERANCE = 10
"""Maximum vertical distance in pixels between the centres of widgets on one line."""


class TabOrder:
    """Computes the Tab order at every key press, because panels change. `panels()` returns the window's panels in
    order.
    """

    def __init__(self, window: QWidget, panels: Callable[[], Sequence[QWidget]]) -> None:
        self._window, self._panels = window, panels

    def tab_stops(self) -> list[QWidget]:
        """Return every widget that Tab reaches, in order."""
        panels = self._panels()
        by_panel: list[list[QWidget]] = [[] for _ in panels]
        taking = [widget for widget in self._window.findChildren(QWidget) if self._takes_focus(widget)]
        for widget in taking:
            index = _panel_index(widget, panels)
            if index is not None and not _is_plain_scroller(widget, taking):
                by_panel[index].append(widget)
        return [widget for widgets in by_panel for widget in _reading_order(widgets, self._window)]

    def move_focus(self, forwards: bool) -> bool:
        """Move the focus to the next or previous widget, wrapping around. Returns False if there is none."""
        stops, here = self.tab_stops(), self._window.focusWidget()
        if not stops:
            return False
        if here in stops:
            index = (stops.index(here) + (1 if forwards else -1)) % len(stops)
        else:
            index = 0 if forwards else -1
        reason = Qt.FocusReason.TabFocusReason if forwards else Qt.FocusReason.BacktabFocusReason
        stops[index].setFocus(reason)
        _scroll_to(stops[index])
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


def _panel_index(widget: QWidget, panels: Sequence[QWidget]) -> int | None:
    """Return the index of the panel that contains the widget."""
    return next((n for n, panel in enumerate(panels) if panel is widget or panel.isAncestorOf(widget)), None)


def _is_plain_scroller(widget: QWidget, others: Sequence[QWidget]) -> bool:
    """Return whether the widget is a scroll area whose contents take the focus themselves."""
    return isinstance(widget, QScrollArea) and any(
        other is not widget and widget.isAncestorOf(other) for other in others
    )


def _reading_order(widgets: Sequence[QWidget], within: QWidget) -> list[QWidget]:
    """Return the widgets line by line. A scrolled block is finished before what follows below it."""
    blocks: dict[QWidget, list[QWidget]] = {}
    for widget in widgets:
        blocks.setdefault(_scrolled_block(widget, within), []).append(widget)
    ordered: list[QWidget] = []
    for block in _by_lines({block: _block_position(block, blocks[block]) for block in blocks}):
        inside = blocks[block]
        ordered += inside if inside == [block] else _reading_order(inside, block)
    return ordered


def _scrolled_block(widget: QWidget, within: QWidget) -> QWidget:
    """Return the outermost scroll area inside `within` that contains the widget, or the widget itself."""
    block, above = widget, widget.parentWidget()
    while above is not None and above is not within:
        block = above if isinstance(above, QScrollArea) else block
        above = above.parentWidget()
    return block


def _by_lines(places: dict[QWidget, QPoint]) -> list[QWidget]:
    lines: list[list[QWidget]] = []
    for widget in sorted(places, key=lambda widget: places[widget].y()):
        if not lines or places[widget].y() - places[lines[-1][0]].y() > LINE_TOLERANCE:
            lines.append([])
        lines[-1].append(widget)
    return [widget for line in lines for widget in sorted(line, key=lambda widget: places[widget].x())]


def _block_position(block: QWidget, inside: Sequence[QWidget]) -> QPoint:
    """Return the position of a block in the window: its centre, or the top of a scrolled page."""
    place = block.rect().center() if list(inside) == [block] else QPoint(0, LINE_TOLERANCE)
    return block.mapTo(block.window(), place)


def _scroll_to(widget: QWidget) -> None:
    """Scroll the surrounding areas so that the widget is visible."""
    above = widget.parentWidget()
    while above is not None:
        content = above.widget() if isinstance(above, QScrollArea) else None
        if isinstance(above, QScrollArea) and content is not None:
            place = widget.mapTo(content, QPoint(0, 0))
            above.ensureVisible(place.x(), place.y() + widget.height() // 2, 0, widget.height())
        above = above.parentWidget()
