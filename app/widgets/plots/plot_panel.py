"""The widget of a plot, with its menu and overlays. pyqtgraph is imported when the first plot is drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QCursor,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role
from decodescope.app.widgets.file_dialogs import open_save_dialog, show_save_error
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.plots import plot_descriptions
from decodescope.app.widgets.plots.plot_spec import PlotSpec
from decodescope.core.system.file_writing import atomic_write
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.widgets.plots.plot_canvas import PlotCanvas, PlotInput

_FILE_TYPES = (
    (mark("Picture (SVG)…"), "svg", mark("Pictures (*.svg)")),
    (mark("Picture (PNG)…"), "png", mark("Pictures (*.png)")),
    (mark("Data (CSV)…"), "csv", mark("Tables (*.csv)")),
)


class PlotMenu(QObject):
    """Creates the context menus of `panel`'s plot, and outlives them."""

    def __init__(self, panel: QWidget, canvas: Callable[[], PlotCanvas], show_whole: Callable[[], None]) -> None:
        """Create the menu's controller. `canvas` creates the canvas on first use; it is called only for saving."""
        super().__init__(panel)
        self._panel, self._canvas, self._show_whole = panel, canvas, show_whole

    def create_menu(self, is_zoomed: bool) -> QMenu:
        """Return a menu that deletes itself when it closes."""
        menu = QMenu(self._panel)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(tr("Show all"), self._show_whole).setEnabled(is_zoomed)
        menu.addSeparator()
        for title, suffix, kinds in _FILE_TYPES:
            menu.addAction(tr(title), partial(self._open_save_dialog, suffix, tr(kinds)))
        return menu

    def _open_save_dialog(self, suffix: str, kinds: str) -> None:
        name = self._panel.accessibleName().lower().replace(" ", "-").replace(",", "")
        open_save_dialog(self._panel, tr("Save plot"), f"{name}.{suffix}", kinds, self.save)

    @Slot(str)
    def save(self, path: str) -> None:
        """Write the plot to a file, by its suffix."""
        from decodescope.app.widgets.plots.plot_canvas import save_plot

        canvas = self._canvas()
        try:
            with atomic_write(Path(path)) as part:
                save_plot(canvas, part, canvas.backgroundBrush().color())
        except OSError as error:
            show_save_error(self._panel, path, error)


_POINTER_DISTANCE = 14
"""Distance from the mouse to the label in pixels."""
_KEYBOARD_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class HoverLabel(Themed, PlainLabel):
    """A small label beside the mouse that stays within the plot."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._ground = parent
        self.hide()

    def restyle(self, theme: Theme) -> None:
        self.setStyleSheet(
            f"background: {theme.panel}; color: {theme.text}; border: 1px solid {theme.line}; border-radius: 4px;"
            f"padding: {theme.px(3)}px {theme.px(6)}px; font-size: {theme.px(12)}px;"
        )

    def show_text(self, text: str, mouse: QPoint) -> None:
        """Show the text beside the mouse: at its right, or at its left if there is no room."""
        self.setVisible(bool(text))
        if not text:
            return
        self.setText(text)
        self.adjustSize()
        room = self._ground.rect()
        left = mouse.x() + _POINTER_DISTANCE
        if left + self.width() > room.right():
            left = mouse.x() - _POINTER_DISTANCE - self.width()
        top = min(mouse.y() + _POINTER_DISTANCE, room.bottom() - self.height())
        self.move(max(0, left), max(0, top))
        self.raise_()


class ResetZoomButton(Themed, QToolButton):
    """“Show all” button in the upper right corner, visible while the plot is zoomed."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setText(tr("Show all"))
        self._ground, self._edge = parent, 0
        self.setToolTip(tr("Show the whole plot again (double-click, or 0)"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    def restyle(self, theme: Theme) -> None:
        self._edge = theme.px(10)
        self.setFont(theme.font(11))

    def set_shown(self, on: bool) -> None:
        """Show or hide the button."""
        self.setVisible(on)
        self.adjustSize()
        self.move(self._ground.width() - self.width() - self._edge, 0)
        self.raise_()


class FocusFrame(Themed, QWidget):
    """A frame around its parent while that has the focus by keyboard."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._ground = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the parent's size and focus."""
        match event.type():
            case QEvent.Type.Resize:
                self.setGeometry(self._ground.rect())
            case QEvent.Type.FocusIn if isinstance(event, QFocusEvent):
                self.setVisible(event.reason() in _KEYBOARD_REASONS)
            case QEvent.Type.FocusOut:
                self.hide()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the frame."""
        painter = QPainter(self)
        painter.setPen(QPen(self._theme.color("accent"), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()


_ZOOM_KEYS = {Qt.Key.Key_Plus: 0.8, Qt.Key.Key_Equal: 0.8, Qt.Key.Key_Minus: 1.25}


class PlotPanel(Themed, QWidget, AccessibleWidget):
    """Emits `hovered(x)` for the position under the mouse, -1 for none, and `picked(x)` for a chosen position."""

    hovered = Signal(int)
    picked = Signal(int)
    accessible_role = Role.Chart

    def __init__(self, name: str, parent: QWidget | None = None, size: tuple[int, int] = (520, 260),
                 min_size: tuple[int, int] = (120, 150)) -> None:  # fmt: skip
        """Create the panel. `size` and `min_size`: preferred and minimum size in pixels at 100 %."""
        super().__init__(parent)
        self._figure = PlotSpec()
        self._size, self._min_size, self._is_compact = size, min_size, False
        self._canvas: PlotCanvas | None = None
        self._input: PlotInput | None = None
        self._cursor: int | None = None
        self.describe_position: Callable[[int], str] = lambda place: plot_descriptions.describe_position(
            self._figure, place
        )
        """Returns the text of a position."""
        self._frame, self._hover_label, self._reset = FocusFrame(self), HoverLabel(self), ResetZoomButton(self)
        self._reset.clicked.connect(self.reset_zoom)
        self.menu = PlotMenu(self, self.canvas, self.reset_zoom)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_compact(self, on: bool) -> None:
        """Set whether the panel prefers its minimum size."""
        self._is_compact = on
        self.updateGeometry()

    # Contents

    @property
    def figure(self) -> PlotSpec:
        """The shown plot."""
        return self._figure

    def restyle(self, theme: Theme) -> None:
        self.updateGeometry()
        self._update_reset_button()

    def show_figure(self, figure: PlotSpec) -> None:
        """Draw another plot; a hidden panel draws it when it is shown."""
        if figure == self._figure:
            return
        self._figure = figure
        self.setAccessibleDescription(plot_descriptions.describe_plot(figure))
        self._hover_label.hide()
        self._draw()

    def set_cursor(self, x: int | None, description: str = "") -> None:
        """Move the cursor. `description` is read by screen readers before the shape of the plot."""
        self._cursor = x
        shape = plot_descriptions.describe_plot(self._figure)
        self.setAccessibleDescription(f"{description}\n{shape}" if description else shape)
        if self._canvas is not None and self._input is not None:
            self._canvas.marks.set_cursor(x)
            self._input.cursor = x

    @Slot()
    def reset_zoom(self) -> None:
        """Reset the zoom."""
        if self._canvas is not None:
            self._canvas.reset_zoom()
            self._update_reset_button()

    @property
    def is_zoomed(self) -> bool:
        """Whether only a part is visible."""
        return self._canvas is not None and self._canvas.is_zoomed

    def canvas(self) -> PlotCanvas:
        """Return the canvas, created on first use."""
        if self._canvas is None:
            from decodescope.app.widgets.plots.plot_canvas import create_canvas

            self._canvas, self._input = create_canvas(self, self._theme)
            self._input.hovered.connect(self._on_hover)
            self._input.picked.connect(self.picked)
            self._input.zoomChanged.connect(self._update_reset_button)
        return self._canvas

    def _draw(self) -> None:
        if not self.isVisible() or (self._canvas is None and self._figure.is_empty):
            return
        self.canvas().show_figure(self._figure)
        for part in (self.canvas(), self.canvas().viewport()):  # screen readers find them beside the panel
            part.setAccessibleName(self.accessibleName())
        assert self._input is not None
        self._input.can_zoom = not self._figure.is_horizontal and max(self._figure.count, self._figure.end) > 12
        self.set_cursor(self._cursor)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw changes made while hidden."""
        super().showEvent(event)
        self._draw()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Resize the canvas with the panel."""
        super().resizeEvent(event)
        if self._canvas is not None:
            self._canvas.setGeometry(self.rect())
        self._update_reset_button()

    def sizeHint(self) -> QSize:
        """Return the preferred size."""
        return QSize(*map(self._theme.px, self._min_size if self._is_compact else self._size))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size."""
        return QSize(*map(self._theme.px, self._min_size))

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per bar or curve. pyqtgraph does not expose their rectangles."""
        return [
            AccessiblePart(f"{number}: {description}", self.rect)
            for number, description in enumerate(plot_descriptions.describe_parts(self._figure), 1)
        ]

    def child_controls(self) -> list[QWidget]:
        """Return the reset button."""
        return [self._reset]

    # Mouse and keyboard

    @Slot(float)
    def _on_hover(self, position: float) -> None:
        canvas, x = self.canvas(), round(position)
        canvas.marks.set_hover(canvas.figure, float(x) if x >= 0 else None)
        self._hover_label.show_text(self.describe_position(x) if x >= 0 else "", self.mapFromGlobal(QCursor.pos()))
        self.hovered.emit(x)

    @Slot()
    def _update_reset_button(self) -> None:
        """Show the reset button while the plot is zoomed."""
        self._reset.set_shown(self.is_zoomed)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the cursor with arrows (with Shift by ten), Home and End; zoom with + and −, reset with 0."""
        step = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        last = int(self._figure.end)
        at = self._cursor or 0
        moves = {Qt.Key.Key_Left: at - step, Qt.Key.Key_Right: at + step, Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}
        if self._cursor is not None and event.key() in moves:
            self.picked.emit(max(0, min(last, moves[Qt.Key(event.key())])))
        elif self._input is not None and self._input.can_zoom and event.key() in _ZOOM_KEYS:
            self._input.zoom(_ZOOM_KEYS[Qt.Key(event.key())], float(at))
        elif self.is_zoomed and event.key() == Qt.Key.Key_0:
            self.reset_zoom()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu."""
        self.menu.create_menu(self.is_zoomed).popup(event.globalPos())
