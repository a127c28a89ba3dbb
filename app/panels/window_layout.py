"""Splitter with a central widget and two side panels, which keep their preferred widths where there is space."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange
from decodescope.resources.language import tr

PREFERRED_WIDTHS, MIN_WIDTHS, REQUIRED_WIDTHS = (300, 324), (236, 250), (173, 194)
"""Preferred, minimum and required widths in pixels at 100 %. The required width scales fully with the text; below it
the panel's content would be cut.
"""
GROWTH, MIN_WIDTH_GROWTH = 0.6, 0.36
CENTRE_WIDTH = 440
"""Width in pixels at 100 % that the side panels try to leave to the centre."""
MAX_WIDTH = 2000


class SideSplitter(Themed, QSplitter):
    """Splitter that restores the preferred widths of its side panels when a small window grows again, unlike QSplitter.

    Widths are stored for 100 %, so that they follow the text size.
    """

    def __init__(self, left: QWidget, middle: QWidget, right: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent, childrenCollapsible=False, handleWidth=1)
        self._sides = (left, right)
        self._growth = 1.0
        self._centre_width = float(CENTRE_WIDTH)
        self._preferred_widths = tuple(map(float, PREFERRED_WIDTHS))
        for part in (left, middle, right):
            self.addWidget(part)
        self.setStretchFactor(1, 1)
        self.handle(1).setAccessibleName(tr("Width of the left panel"))
        self.handle(2).setAccessibleName(tr("Width of the right panel"))
        self.splitterMoved.connect(self._on_moved)

    @property
    def preferred_widths(self) -> tuple[int, int]:
        """Preferred widths of the side panels at 100 %."""
        return round(self._preferred_widths[0]), round(self._preferred_widths[1])

    def set_preferred_widths(self, widths: Sequence[int]) -> None:
        """Set the preferred widths of the side panels at 100 %."""
        pairs = zip(widths, MIN_WIDTHS, strict=True)
        self._preferred_widths = tuple(float(min(MAX_WIDTH, max(min_width, width))) for width, min_width in pairs)
        self.distribute_width()

    def set_scale(self, scale: float) -> None:
        """Scale the widths with the text size (1.0 = 100 %), but less than proportionally, to preserve the centre's
        width.
        """
        self._growth = 1 + (scale - 1) * GROWTH
        for panel, min_width, needed in zip(self._sides, MIN_WIDTHS, REQUIRED_WIDTHS, strict=True):
            panel.setMinimumWidth(round(max(min_width * (1 + (scale - 1) * MIN_WIDTH_GROWTH), needed * scale)))
        self.distribute_width()

    def restyle(self, theme: Theme) -> None:
        self.set_scale(theme.scale)

    def distribute_width(self) -> None:
        """Distribute the width among the parts."""
        room = self.width() - self.handleWidth() * sum(not side.isHidden() for side in self._sides)
        crowded = self._is_crowded(room)
        self.setCollapsible(2, crowded)
        widths = self._side_widths(room)
        if crowded:
            widths[1] = 0
        sizes = [widths[0], max(1, room - sum(widths)), widths[1]]
        if sizes != self.sizes():
            self.setSizes(sizes)

    def _is_crowded(self, available_width: int) -> bool:
        """Return whether both side panels leave the centre less than its minimum width; the right one is then
        collapsed.
        """
        if any(side.isHidden() for side in self._sides):
            return False
        min_side_width = sum(side.minimumWidth() for side in self._sides)
        middle = self.widget(1)
        return middle is not None and min_side_width + middle.minimumSizeHint().width() > available_width

    def _side_widths(self, available_width: int) -> list[int]:
        """Return the widths of the side panels: the preferred ones, minus what the centre lacks, in proportion to what
        each can give up.
        """
        open_ones = [not side.isHidden() for side in self._sides]
        preferred_widths = [
            width * self._growth * is_open for width, is_open in zip(self._preferred_widths, open_ones, strict=True)
        ]
        min_widths = [side.minimumWidth() * is_open for side, is_open in zip(self._sides, open_ones, strict=True)]
        shrinkable = [
            max(0.0, width - min_width) for width, min_width in zip(preferred_widths, min_widths, strict=True)
        ]
        lacking = min(
            sum(shrinkable), max(0.0, sum(preferred_widths) + self._centre_width * self._growth - available_width)
        )
        share = lacking / sum(shrinkable) if sum(shrinkable) else 0.0
        return [round(width - part * share) for width, part in zip(preferred_widths, shrinkable, strict=True)]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.distribute_width()

    def event(self, event: QEvent) -> bool:
        """Redistribute the width when a panel was opened or closed, or needs more space."""
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self.distribute_width()
        return done

    @Slot(int, int)
    def _on_moved(self, _place: int, _handle: int) -> None:
        """Store the widths chosen by the user, even if they leave little to the centre."""
        left, middle, right = self.sizes()
        sizes = zip((left, right), self._sides, self._preferred_widths, strict=True)
        self._preferred_widths = tuple(old if side.isHidden() else size / self._growth for size, side, old in sizes)
        self._centre_width = min(self._centre_width, middle / self._growth)


class WindowBody(QWidget):
    """Column with toolbar, centre, docked panels, timeline and status line."""

    def __init__(self, toolbar: QWidget, middle: QWidget, timeline: QWidget, status: QWidget) -> None:
        super().__init__()
        self._timeline = timeline
        self._column = arrange(QVBoxLayout(self), margins=0, spacing=0)
        for part in (toolbar, middle, timeline, status):
            self._column.addWidget(part, 1 if part is middle else 0)

    def dock(self, panel: QWidget) -> None:
        """Insert a panel above the timeline, where it covers nothing."""
        self._column.insertWidget(self._column.indexOf(self._timeline), panel)
