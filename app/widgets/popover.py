"""A popover with figures, and the scroll area that shows it for the element under the pointer."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QHideEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QGridLayout, QLabel, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.inputs import changes_text_size
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.screen import available_rect


class HoverArea(QAbstractScrollArea):
    """Emits a signal when the hovered element is no longer under the pointer."""

    hoverEnded = Signal()
    """The pointer left, or the contents scrolled below it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; leave Ctrl+wheel to the window, which changes the text size."""
        if changes_text_size(event):
            event.ignore()
        else:
            super().wheelEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Report that the pointer left."""
        self.hoverEnded.emit()
        super().leaveEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Report that hovering ended: the popover is a window of its own and would stay open."""
        self.hoverEnded.emit()
        super().hideEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Report that the contents moved below the pointer."""
        self.hoverEnded.emit()
        self.viewport().update()


class Popover(Themed, QFrame):
    """Figures in two columns, right-aligned and tabular."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.ToolTip | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._theme = theme
        self._title = PlainLabel(self)
        self._grid = QGridLayout()
        box = self._box = QVBoxLayout(self)
        box.setSizeConstraint(QVBoxLayout.SizeConstraint.SetFixedSize)
        arrange(box, self._title, self._grid)
        self._cells: list[tuple[PlainLabel, PlainLabel]] = []

    def restyle(self, theme: Theme) -> None:
        self.setStyleSheet(f"Popover {{ background: {theme.panel}; border: 1px solid {theme.line}; }}")
        self._box.setContentsMargins(theme.px(12), theme.px(9), theme.px(12), theme.px(10))
        self._box.setSpacing(theme.px(6))
        self._grid.setVerticalSpacing(theme.px(3))
        self._grid.setHorizontalSpacing(theme.px(18))

    def show_rows(self, title: str, rows: Sequence[tuple[str, str]], anchor: QRect) -> None:
        """Show the card below (or above) the rectangle `anchor`, given in global coordinates."""
        self._title.setText(title)
        _style(self._title, self._theme, 15, "text", 600)
        self._set_rows(rows)
        self.adjustSize()
        self.move(self._position_near(anchor))
        self.show()

    def _set_rows(self, rows: Sequence[tuple[str, str]]) -> None:
        while len(self._cells) < len(rows):
            name, value = PlainLabel(self), PlainLabel(self)
            value.setAlignment(Qt.AlignmentFlag.AlignRight)
            arrange(self._grid, (name, len(self._cells), 0), (value, len(self._cells), 1))
            self._cells.append((name, value))
        for n, (name, value) in enumerate(self._cells):
            name.setVisible(n < len(rows))
            value.setVisible(n < len(rows))
            if n < len(rows):
                name.setText(rows[n][0])
                value.setText(rows[n][1])
                _style(name, self._theme, 12, "muted")
                _style(value, self._theme, 12, "text")

    def _position_near(self, anchor: QRect) -> QPoint:
        screen = available_rect(self)
        x = min(max(screen.left(), anchor.left()), screen.right() - self.width())
        below = anchor.bottom() + self._theme.px(6)
        fits = below + self.height() <= screen.bottom()
        return QPoint(x, below if fits else anchor.top() - self.height() - self._theme.px(6))


def _style(label: QLabel, theme: Theme, px: int, color: str, weight: int = 400) -> None:
    label.setFont(theme.font(px, weight, tabular=True))
    label.setStyleSheet(f"color: {getattr(theme, color)}; font-size: {theme.px(px)}px; font-weight: {weight};")
