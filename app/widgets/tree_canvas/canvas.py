"""The canvas for trees: one widget that pans, zooms, folds, follows growth and is walked by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QRectF, Qt, Slot
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

from app.theme.theme import Theme
from app.widgets.plain_text import show_tooltip
from app.widgets.tree_canvas.accessible import AccessibleTree
from app.widgets.tree_canvas.canvas_input import CanvasInput
from app.widgets.tree_canvas.minimap import Minimap
from app.widgets.tree_canvas.navigation import CanvasNavigation
from app.widgets.tree_canvas.node_selection import NodeSelection
from resources.language import tr


class TreeCanvas(AccessibleTree):
    """Draws its `stage`. What is shown is set there, where the camera goes in `travel`, what is picked in `selection`,
    and what mouse and keys mean in `input`; all four have signals of their own."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.travel = CanvasNavigation(self.stage, self)
        self.selection = NodeSelection(self.stage, self.travel)
        self.input = CanvasInput(self.stage, self.travel, self.selection, self)
        self.minimap = Minimap(self.stage.scene, self.stage.look, self)
        self.describe: Callable[[int], str] = lambda node: ""
        """Text of the tip that appears over a node."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(tr("Tree"))
        self.setMinimumSize(120, 60)
        self._connect()

    def _connect(self) -> None:
        self.minimap.moved.connect(self.travel.centre_on)
        self.stage.changed.connect(self._on_changed)
        self.stage.touched.connect(self._on_touched)
        self.travel.moved.connect(self._on_moved)
        self.selection.marked.connect(self.say_focus)

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self.stage.set_theme(theme)

    def set_presenting(self, on: bool) -> None:
        """Afterwards the camera is where it was."""
        self.travel.step_aside(on)

    @Slot(bool)
    def _on_changed(self, at_once: bool) -> None:
        self.minimap.fit_into(self.width(), self.height())
        self.minimap.tree_changed(at_once)
        self._on_moved()

    @Slot(bool)
    def _on_touched(self, in_overviews: bool) -> None:
        if in_overviews:
            self.minimap.tree_changed()
            self._clear_selected()
        self.update()

    @Slot()
    def _on_moved(self) -> None:
        self._clear_selected()
        self.minimap.set_frame(self.stage.camera.rect_to_canvas(QRectF(self.rect())))
        self.update()

    def _clear_selected(self) -> None:
        """The map never hides the selected node."""
        selected = self.stage.look.selected
        self.minimap.keep_clear(self.stage.places.node_rect(selected) if selected is not None else QRect())

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        painter, stage = QPainter(self), self.stage
        painter.fillRect(event.rect(), stage.look.theme.color("window"))
        stage.look.focused = self.hasFocus()
        if stage.scene.last >= 0:
            stage.painter.paint(painter, stage.camera, QRectF(event.rect()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep following, or show what was shown."""
        if event.oldSize().isValid():
            self.travel.resized(event.size() - event.oldSize())
        self.stage.changed.emit(False)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick a node, fold, or begin to drag the canvas."""
        self.input.press(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the canvas, or light up what is under the pointer."""
        self.input.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End of a drag."""
        self.input.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Fold a node; on the ground, show everything."""
        self.input.double_click(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom to the pointer; with Shift, or two fingers on a pad, move."""
        self.input.wheel(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk, move, zoom, fold; letters begin a search."""
        if not self.input.key(event):
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer went elsewhere."""
        self.selection.set_hovered(None)
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say where one is."""
        super().focusInEvent(event)
        if self.selection.selected is not None:
            self.say_focus(self.selection.selected)

    def event(self, event: QEvent) -> bool:
        """Tips over nodes, and two fingers that zoom."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape and self.selection.selected is not None:
                event.accept()  # it lets go of the node before it stops a run
                return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._show_tip(event)
            return True
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.travel.zoom_by(1 + event.value(), event.position())
            return True
        return super().event(event)

    def _show_tip(self, event: QHelpEvent) -> None:
        node = self.stage.places.node_at(event.pos())
        text = self.describe(node) if node is not None else ""
        place = self.stage.places.node_rect(node) if node is not None else QRect()
        show_tooltip(event.globalPos(), text, self, place)
