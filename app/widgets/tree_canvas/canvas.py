"""The tree canvas: a widget that pans, zooms, folds, follows growth and is navigated by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.app.widgets.tree_canvas.accessible import AccessibleTree
from decodescope.app.widgets.tree_canvas.canvas_input import CanvasInput
from decodescope.app.widgets.tree_canvas.minimap import Minimap
from decodescope.app.widgets.tree_canvas.navigation import CanvasNavigation
from decodescope.app.widgets.tree_canvas.node_selection import NodeSelection
from decodescope.resources.language import tr


class TreeCanvas(Themed, AccessibleTree):
    """Draws its `canvas_state`. `navigation` moves the camera, `selection` selects nodes, `input_handler` handles mouse
    and keys; each has its own signals.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.navigation = CanvasNavigation(self.canvas_state, self)
        self.selection = NodeSelection(self.canvas_state, self.navigation)
        self.input_handler = CanvasInput(self.canvas_state, self.navigation, self.selection, self)
        self.minimap = Minimap(self.canvas_state.scene, self.canvas_state.style, self)
        self._is_making_room = False
        self.node_tooltip: Callable[[int], str] = lambda node: ""
        """Returns the tooltip of a node."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(tr("Tree"))
        self.setMinimumSize(120, 60)
        self._connect()

    def _connect(self) -> None:
        self.minimap.moved.connect(self.navigation.centre_on)
        self.canvas_state.changed.connect(self._on_changed)
        self.canvas_state.restyled.connect(self._on_touched)
        self.navigation.moved.connect(self._on_moved)
        self.selection.selectionChanged.connect(self.announce_focus)

    def restyle(self, theme: Theme) -> None:
        self.canvas_state.set_theme(theme)

    def set_presenting(self, on: bool) -> None:
        """Follow the growth while presenting, and restore the camera afterwards."""
        self.navigation.set_presenting(on)

    @Slot(bool)
    def _on_changed(self, at_once: bool) -> None:
        self.minimap.fit_into(self.width(), self.height())
        self.minimap.tree_changed(at_once)
        self._on_moved()

    @Slot(bool)
    def _on_touched(self, in_overviews: bool) -> None:
        if in_overviews:
            self.minimap.tree_changed()
        self.update()

    @Slot()
    def _on_moved(self) -> None:
        self.minimap.set_frame(self.canvas_state.camera.rect_to_canvas(QRectF(self.contentsRect())))
        self._leave_room_for_map()
        self.update()

    def _leave_room_for_map(self) -> None:
        """Draw the tree beside the map, never under it."""
        margins = self.minimap.margins
        if margins == self.contentsMargins() or self._is_making_room:
            return
        self._is_making_room = True
        before = self.contentsRect().size()
        self.setContentsMargins(margins)
        self.navigation.handle_resize(self.contentsRect().size() - before)
        self.canvas_state.changed.emit(False)
        self._is_making_room = False

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible part."""
        painter, stage = QPainter(self), self.canvas_state
        painter.fillRect(event.rect(), stage.style.theme.color("window"))
        stage.style.focused = self.hasFocus()
        area = event.rect().intersected(self.contentsRect())
        if stage.scene.last_depth >= 0 and not area.isEmpty():
            painter.setClipRect(area)
            stage.painter.paint(painter, stage.camera, QRectF(area))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep following, or keep the visible part."""
        before = event.oldSize()
        self.navigation.handle_resize(event.size() - before if before.isValid() else QSize(0, 0))
        self.canvas_state.changed.emit(False)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start a click or a drag."""
        self.input_handler.press(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the canvas, or highlight the node under the pointer."""
        self.input_handler.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Finish a click or a drag."""
        self.input_handler.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Fold a node; on the background, show everything."""
        self.input_handler.double_click(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom at the pointer; with Shift, or with two fingers on a touchpad, pan."""
        self.input_handler.wheel(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Navigate, pan, zoom or fold; letters start a search."""
        if not self.input_handler.handle_key(event):
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Clear the highlighted node."""
        self.selection.set_hovered(None)
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Announce the selected node."""
        super().focusInEvent(event)
        if self.selection.selected is not None:
            self.announce_focus(self.selection.selected)

    def event(self, event: QEvent) -> bool:
        """Handle tooltips, pinch zoom and Escape."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape and self.selection.selected is not None:
                event.accept()  # Escape deselects the node before it stops a run
                return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._show_tip(event)
            return True
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.navigation.zoom_by(1 + event.value(), event.position())
            return True
        return super().event(event)

    def _show_tip(self, event: QHelpEvent) -> None:
        node = self.canvas_state.positions.node_at(event.pos())
        text = self.node_tooltip(node) if node is not None else ""
        place = self.canvas_state.positions.node_rect(node) if node is not None else QRect()
        show_tooltip(event.globalPos(), text, self, place)
