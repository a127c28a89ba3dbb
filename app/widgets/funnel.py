"""A funnel of processing stages from left to right; heights are the logarithm of the remaining tokens. Some stages can
be dragged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleWidget, Role, announce
from decodescope.app.widgets.funnel_layout import MAX_SIDE_BY_SIDE, FunnelLayout, FunnelStage, bar_fractions
from decodescope.app.widgets.plain_text import show_tooltip
from decodescope.resources.language import tr

__all__ = ["MAX_SIDE_BY_SIDE", "FunnelStage", "FunnelWidget", "bar_fractions"]

_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}


def _stage_text(stage: FunnelStage) -> str:
    return tr("{stage}: {count:,} left").format(stage=stage.label, count=stage.survivors)


class _DraggedStage(NamedTuple):
    """A stage that is being dragged with the mouse."""

    name: str
    drag_threshold: QRect
    """Area within which the mouse does not start a drag."""
    target: int | None = None
    """Target index among the movable stages; None before the drag starts."""

    @classmethod
    def start_at(cls, name: str, point: QPoint) -> _DraggedStage:
        """Start at the pressed point."""
        reach = QApplication.startDragDistance()
        return cls(name, QRect(point, QSize()).adjusted(-reach, -reach, reach, reach))


class FunnelWidget(Themed, QWidget, AccessibleWidget):
    """Painted stages with tooltips.

    `stageMoved(name, index)`: a stage was moved, by dragging or with Alt and an arrow key, to an index among the
    movable stages.
    """

    accessible_role = Role.List
    stageMoved = Signal(str, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stages: tuple[FunnelStage, ...] = ()
        self._current: str = ""
        """The stage with the keyboard focus."""
        self._dragged: _DraggedStage | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Funnel"))

    def set_stages(self, stages: Sequence[FunnelStage]) -> None:
        """Show these stages."""
        resized = len(stages) != len(self._stages)
        self._stages = tuple(stages)
        self.setAccessibleDescription("; ".join(map(_stage_text, stages)))
        can_move = len(self.movable_stages) > 1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if can_move else Qt.FocusPolicy.NoFocus)
        if self._current not in self.movable_stages:
            self._current = self.movable_stages[0] if can_move else ""
        self._end_drag()
        if resized:
            self.updateGeometry()
        self.update()

    @property
    def stages(self) -> tuple[FunnelStage, ...]:
        """The shown stages."""
        return self._stages

    @property
    def movable_stages(self) -> list[str]:
        """Names of the stages that can be moved."""
        return self._layout.movable_stages

    def accessible_parts(self) -> list[AccessiblePart]:
        """Return one part per stage: its label, the remaining tokens, its effect."""
        return [
            AccessiblePart(f"{number + 1}: {label}, {stage.tip}" if stage.tip else f"{number + 1}: {label}",
                 partial(self.stage_rect, number), value=f"{stage.survivors:,}",
                 selected=bool(stage.name) and stage.name == self._current and self.hasFocus())
            for number, (stage, label) in enumerate(zip(self._stages, map(_stage_text, self._stages), strict=True))
        ]  # fmt: skip

    @property
    def _layout(self) -> FunnelLayout:
        return FunnelLayout(self._theme, self._stages, self.width(), self.height())

    def stage_rect(self, number: int) -> QRect:
        """Return the rectangle of a stage, including its text."""
        return self._layout.rect(number)

    def stage_at(self, x: float, y: float) -> FunnelStage | None:
        """Return the stage at a point of the widget."""
        return self._layout.stage_at(x, y)

    @property
    def is_listed(self) -> bool:
        """Whether the stages are listed vertically because there are too many to place side by side."""
        return self._layout.is_listed

    def sizeHint(self) -> QSize:
        """Return the size of the bars with two lines of text, or of one line per stage."""
        height = 24 * len(self._stages) if self.is_listed else 100
        return QSize(self._theme.px(240), self._theme.px(height))

    def minimumSizeHint(self) -> QSize:
        """Return a small width and the full height."""
        return QSize(self._theme.px(160), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the stages, the focus ring and the target of a drag."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        places = self._layout
        drawn = places.painter
        if places.is_listed:
            drawn.paint_list(painter)
        elif self._stages:
            drawn.paint_bars(painter)
        if self.hasFocus() and self._current in places.movable_stages:
            drawn.paint_focus_ring(painter, places.rect(places.stage_index(self._current)))
        if self._dragged is not None and self._dragged.target is not None:
            dragged_rect = places.rect(places.stage_index(self._dragged.name))
            drawn.paint_drag(painter, dragged_rect, places.insertion_line(self._dragged.name, self._dragged.target))

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of the stage under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            stage = self.stage_at(event.pos().x(), event.pos().y())
            show_tooltip(event.globalPos(), _stage_tooltip(stage, len(self.movable_stages)) if stage else "", self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start dragging a movable stage."""
        name = self._layout.movable_at(event.position().x(), event.position().y())
        if event.button() != Qt.MouseButton.LeftButton or not name:
            super().mousePressEvent(event)
            return
        self._current, self._dragged = name, _DraggedStage.start_at(name, event.position().toPoint())
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show the target of the drag."""
        point, places = event.position(), self._layout
        if self._dragged is None:
            can_move = places.movable_at(point.x(), point.y())
            self.setCursor(Qt.CursorShape.OpenHandCursor if can_move else Qt.CursorShape.ArrowCursor)
            return
        if self._dragged.target is None and self._dragged.drag_threshold.contains(point.toPoint()):
            return
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self._dragged = self._dragged._replace(target=places.target_index(point.x(), point.y()))
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Move the stage to its target."""
        held = self._dragged
        self._end_drag()
        if held is not None and held.target is not None:
            self._move_stage(held.name, held.target)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the focus with the arrow keys, move the stage with Alt and an arrow key, cancel a drag with Escape."""
        step, names = _STEPS.get(Qt.Key(event.key())), self.movable_stages
        if event.key() == Qt.Key.Key_Escape and self._dragged is not None:
            self._end_drag()
        elif step is None or self._current not in names:
            super().keyPressEvent(event)
        elif event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self._move_stage(self._current, names.index(self._current) + step)
        else:
            self._current = names[max(0, min(len(names) - 1, names.index(self._current) + step))]
            announce(self, _stage_text(self._stages[self._layout.stage_index(self._current)]))
            self.update()

    def _move_stage(self, name: str, index: int) -> None:
        names = self.movable_stages
        if 0 <= index < len(names) and index != names.index(name):
            label = self._stages[self._layout.stage_index(name)].label
            message = tr("{stage} is now number {place} of {count} movable stages.")
            announce(self, message.format(stage=label, place=index + 1, count=len(names)))
            self.stageMoved.emit(name, index)

    def _end_drag(self) -> None:
        self._dragged = None
        self.unsetCursor()
        self.update()


def _stage_tooltip(stage: FunnelStage, movable: int) -> str:
    """Return the tooltip of a stage: its effect, and how to move it if that is possible."""
    hint = tr("Drag to move, or press Alt and an arrow key.") if stage.name and movable > 1 else ""
    return "\n".join(part for part in (stage.tip, hint) if part)
