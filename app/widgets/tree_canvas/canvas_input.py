"""Mouse and keyboard handling of the canvas."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, Qt, Signal
from PySide6.QtGui import QGuiApplication, QInputDevice, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.tree_canvas import node_selection
from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.navigation import CanvasNavigation
from decodescope.app.widgets.tree_canvas.node_selection import NodeSelection

ZOOM_STEP = 1.25
WHEEL_NOTCH = 120.0
"""Wheel units per notch."""
PAN_STEP = 80.0
_ARROWS = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
}  # fmt: skip
_ZOOMS = {Qt.Key.Key_Plus: ZOOM_STEP, Qt.Key.Key_Equal: ZOOM_STEP, Qt.Key.Key_Minus: 1 / ZOOM_STEP}
_MODIFIERS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier


class CanvasInput(QObject):
    """Turns the events of a widget into camera moves and selections."""

    typed = Signal(str)
    """The user started to type a search."""

    def __init__(
        self, state: CanvasState, navigation: CanvasNavigation, selection: NodeSelection, widget: QWidget
    ) -> None:
        super().__init__(widget)
        self._state, self._navigation, self._selection, self._widget = state, navigation, selection, widget
        self._last: QPointF | None = None
        self._pressed: QPointF | None = None
        self._dragged = False

    # Mouse

    def press(self, event: QMouseEvent) -> None:
        """Note a press of the left or middle button, which starts a click or a drag."""
        if event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            return
        self._last = self._pressed = event.position()
        self._dragged = False

    def move(self, event: QMouseEvent) -> None:
        """Drag once the pointer has moved far enough; otherwise highlight the node under it."""
        if self._last is None or self._pressed is None or event.buttons() == Qt.MouseButton.NoButton:
            self._hover(event.position())
            return
        gone = (event.position() - self._pressed).manhattanLength()
        if not self._dragged and gone < QGuiApplication.styleHints().startDragDistance():
            return
        if not self._dragged:
            self._dragged = True
            self._navigation.set_follow(False)
            self._widget.setCursor(Qt.CursorShape.ClosedHandCursor)
        step = event.position() - self._last
        self._last = event.position()
        self._navigation.pan(-step.x(), -step.y())

    def release(self, event: QMouseEvent) -> None:
        """Treat a press without a drag as a click."""
        clicked = self._pressed is not None and not self._dragged
        self._last = self._pressed = None
        self._widget.unsetCursor()
        if clicked and event.button() == Qt.MouseButton.LeftButton:
            self._click(event.position())

    def _click(self, position: QPointF) -> None:
        marked = self._state.positions.fold_mark_at(position)
        if marked is not None:
            self._selection.toggle_fold(marked)
        else:
            self._selection.pick(self._state.positions.node_at(position))

    def double_click(self, event: QMouseEvent) -> None:
        """Fold a node, or fit the tree on the background."""
        if (
            event.button() != Qt.MouseButton.LeftButton
            or self._state.positions.fold_mark_at(event.position()) is not None
        ):
            return
        node = self._state.positions.node_at(event.position())
        if node is not None:
            self._selection.toggle_fold(node)
        else:
            self._navigation.fit()

    def _hover(self, position: QPointF) -> None:
        marked = self._state.positions.fold_mark_at(position)
        node = marked if marked is not None else self._state.positions.node_at(position)
        self._selection.set_hovered(node)
        shape = Qt.CursorShape.ArrowCursor if node is None else Qt.CursorShape.PointingHandCursor
        self._widget.setCursor(shape)

    def wheel(self, event: QWheelEvent) -> None:
        """Zoom with the wheel. Pan with Shift, or with two fingers on a touchpad unless Ctrl is held."""
        turn, modifiers = event.angleDelta(), event.modifiers()
        on_pad = event.device() is not None and event.device().type() == QInputDevice.DeviceType.TouchPad
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            self._navigation.set_follow(False)
            along = turn.y() or turn.x()
            self._navigation.pan(0 if self._state.is_top_down else -along, -along if self._state.is_top_down else 0)
        elif on_pad and not modifiers & Qt.KeyboardModifier.ControlModifier:
            self._navigation.set_follow(False)
            moved = event.pixelDelta() if not event.pixelDelta().isNull() else turn
            self._navigation.pan(-moved.x(), -moved.y())
        elif turn.y():
            self._navigation.zoom_by(ZOOM_STEP ** (turn.y() / WHEEL_NOTCH), event.position())
        event.accept()

    # Keyboard

    def handle_key(self, event: QKeyEvent) -> bool:
        """Handle a key press. Returns True if the key was used."""
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        if key in _ARROWS and not modifiers & _MODIFIERS:
            return self._arrow(key, bool(modifiers & Qt.KeyboardModifier.ShiftModifier))
        if modifiers & _MODIFIERS:
            return False
        if key in _ZOOMS:
            self._navigation.zoom_by(_ZOOMS[key])
            return True
        return self._jump(key) or self._type(event)

    def _arrow(self, key: Qt.Key, move: bool) -> bool:
        right, down = _ARROWS[key]
        if move:
            self._navigation.set_follow(False)
            self._navigation.pan(right * PAN_STEP, down * PAN_STEP)
            return True
        along, across = (down, right) if self._state.is_top_down else (right, down)
        self._move_selection(along, across)
        return True

    def _move_selection(self, along: int, across: int) -> None:
        scene, selected = self._state.scene, self._selection.selected
        if scene.last_depth < 0:
            return
        here = node_selection.nearest_shown_ancestor(scene, selected) if selected is not None else None
        if here is None:
            self._select(self._start_node())
        elif across:
            self._select(node_selection.neighbour(scene, here, across))
        elif along < 0:
            self._select(node_selection.parent_of(scene, here))
        else:
            self._select(node_selection.preferred_child(scene, here, self._state.style.best_path))

    def _start_node(self) -> int:
        """Return the node where navigation starts: the end of the best path, or the root."""
        scene = self._state.scene
        shown = [node for node in self._state.style.best_path if scene.is_shown(node)]
        return shown[-1] if shown else scene.layout.nodes_in(0)[0]

    def _select(self, node: int) -> None:
        self._navigation.set_follow(False)
        self._selection.pick(node)

    def _jump(self, key: Qt.Key) -> bool:
        scene, selected = self._state.scene, self._selection.selected
        if key == Qt.Key.Key_Home and scene.last_depth >= 0:
            self._select(scene.layout.nodes_in(0)[0])
        elif key == Qt.Key.Key_End and scene.last_depth >= 0:
            self._select(self._start_node())
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and selected is not None:
            self._selection.toggle_fold(selected)
        elif key == Qt.Key.Key_Escape and selected is not None:
            self._selection.pick(None)
        else:
            return False
        return True

    def _type(self, event: QKeyEvent) -> bool:
        text = event.text()
        if not text or not text.isprintable() or text.isspace():
            return False
        self.typed.emit(text)
        return True
