"""A funnel: stages from left to right, each as tall as the logarithm of what survives it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QLineF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QSizePolicy, QToolTip, QWidget

from app.theme.theme import Theme
from app.widgets.funnel_painting import FunnelPainter, FunnelStage, heights
from app.widgets.spoken import Part, Role, Spoken, announce
from resources.language import tr

__all__ = ["SIDE_BY_SIDE", "Funnel", "FunnelStage", "heights"]

SIDE_BY_SIDE = 5
"""More stages than this are listed below each other."""
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}


def _said(stage: FunnelStage) -> str:
    return tr("{stage}: {count:,} left").format(stage=stage.label, count=stage.survivors)


class Funnel(QWidget, Spoken):
    """Painted stages; what a stage did appears on hover.

    `moved(name, place)`: a stage was dragged, or sent by Alt and an arrow, to a place among those that can be moved.
    """

    spoken_role = Role.List
    moved = Signal(str, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stages: tuple[FunnelStage, ...] = ()
        self._current: str = ""
        """The stage that the keyboard is at."""
        self._pressed: tuple[str, QRect] | None = None
        """What may be dragged, and how far the mouse may go without dragging it."""
        self._target: int | None = None
        """Where it would come to lie, among those that can be moved."""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setAccessibleName(tr("Funnel"))

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_stages(self, stages: Sequence[FunnelStage]) -> None:
        """Show these stages."""
        resized = len(stages) != len(self._stages)
        self._stages = tuple(stages)
        self.setAccessibleDescription("; ".join(map(_said, stages)))
        can_move = len(self.movable) > 1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if can_move else Qt.FocusPolicy.NoFocus)
        if self._current not in self.movable:
            self._current = self.movable[0] if can_move else ""
        self._drop()
        if resized:
            self.updateGeometry()
        self.update()

    @property
    def stages(self) -> tuple[FunnelStage, ...]:
        """What is shown."""
        return self._stages

    @property
    def movable(self) -> list[str]:
        """The stages that can change places, by name."""
        return [stage.name for stage in self._stages if stage.name]

    def spoken_parts(self) -> list[Part]:
        """A stage after the other: its label, how many it left, what it did."""
        return [
            Part(f"{number + 1}: {said}, {stage.tip}" if stage.tip else f"{number + 1}: {said}",
                 partial(self.stage_rect, number), value=f"{stage.survivors:,}",
                 selected=bool(stage.name) and stage.name == self._current and self.hasFocus())
            for number, (stage, said) in enumerate(zip(self._stages, map(_said, self._stages), strict=True))
        ]  # fmt: skip

    def stage_rect(self, number: int) -> QRect:
        """Where a stage is drawn, its words included."""
        if self.listed:
            height = self._theme.px(24)
            return QRect(0, number * height, self.width(), height)
        cell = self._painter().cells()[number].toAlignedRect()
        return cell.adjusted(0, 0, 0, self.height() - cell.height())

    @property
    def listed(self) -> bool:
        """Whether there are too many stages to stand side by side."""
        return len(self._stages) > SIDE_BY_SIDE

    def sizeHint(self) -> QSize:
        """A block of bars with two lines of text, or one line a stage."""
        height = 24 * len(self._stages) if self.listed else 100
        return QSize(self._theme.px(240), self._theme.px(height))

    def minimumSizeHint(self) -> QSize:
        """Narrow, but never cut off below."""
        return QSize(self._theme.px(160), self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """The stages, one way or the other; what the keyboard is at, and where what is dragged would go."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        drawn = self._painter()
        if self.listed:
            drawn.paint_list(painter)
        elif self._stages:
            drawn.paint_bars(painter)
        if self.hasFocus() and self._current in self.movable:
            drawn.paint_ring(painter, self.stage_rect(self._number(self._current)))
        if self._pressed is not None and self._target is not None:
            drawn.paint_drag(painter, self.stage_rect(self._number(self._pressed[0])), self._gap(self._target))

    def _painter(self) -> FunnelPainter:
        return FunnelPainter(self._theme, self._stages, self.width(), self.listed)

    def _number(self, name: str) -> int:
        return next(number for number, stage in enumerate(self._stages) if stage.name == name)

    def _gap(self, place: int) -> QLineF:
        """The line at which what is dragged would come to lie."""
        assert self._pressed is not None
        names = self.movable
        rect, is_behind = self.stage_rect(self._number(names[place])), place > names.index(self._pressed[0])
        if self.listed:
            y = rect.bottom() + 1 if is_behind else rect.top()
            return QLineF(0, y, self.width(), y)
        x = rect.right() + 1 + self._theme.px(4) if is_behind else rect.left() - self._theme.px(4)
        return QLineF(x, 0, x, self.height())

    def stage_at(self, x: float, y: float) -> FunnelStage | None:
        """The stage under a point of the widget."""
        if not self._stages:
            return None
        share = y / self._theme.px(24) if self.listed else x / max(1, self.width()) * len(self._stages)
        return self._stages[int(share)] if 0 <= share < len(self._stages) else None

    def event(self, event: QEvent) -> bool:
        """Tell what the stage under the pointer did."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            stage = self.stage_at(event.pos().x(), event.pos().y())
            QToolTip.showText(event.globalPos(), self._tip(stage) if stage else "", self)
            return True
        return super().event(event)

    def _tip(self, stage: FunnelStage) -> str:
        can_move = stage.name and len(self.movable) > 1
        hint = tr("Drag it to another place, or press Alt and an arrow key.") if can_move else ""
        return "\n".join(part for part in (stage.tip, hint) if part)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of a stage that can be moved."""
        stage = self.stage_at(event.position().x(), event.position().y())
        if event.button() != Qt.MouseButton.LeftButton or stage is None or not stage.name or len(self.movable) < 2:
            super().mousePressEvent(event)
            return
        self._current = stage.name
        reach = QApplication.startDragDistance()
        still = QRect(event.position().toPoint(), QSize()).adjusted(-reach, -reach, reach, reach)
        self._pressed, self._target = (stage.name, still), None
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show where it would come to lie."""
        point = event.position()
        stage = self.stage_at(point.x(), point.y())
        if self._pressed is None:
            can_move = stage is not None and bool(stage.name) and len(self.movable) > 1
            self.setCursor(Qt.CursorShape.OpenHandCursor if can_move else Qt.CursorShape.ArrowCursor)
            return
        if self._target is None and self._pressed[1].contains(point.toPoint()):
            return
        self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self._target = self._place_at(point.x(), point.y())
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Move it there."""
        pressed, target = self._pressed, self._target
        self._drop()
        if pressed is not None and target is not None:
            self._send(pressed[0], target)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go from stage to stage, with Alt they take it along; Escape lets go."""
        step, names = _STEPS.get(Qt.Key(event.key())), self.movable
        if event.key() == Qt.Key.Key_Escape and self._pressed is not None:
            self._drop()
        elif step is None or self._current not in names:
            super().keyPressEvent(event)
        elif event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self._send(self._current, names.index(self._current) + step)
        else:
            self._current = names[max(0, min(len(names) - 1, names.index(self._current) + step))]
            announce(self, _said(self._stages[self._number(self._current)]))
            self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The ring comes."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The ring goes."""
        super().focusOutEvent(event)
        self.update()

    def _place_at(self, x: float, y: float) -> int:
        """The place among the movable ones that a point is nearest to."""
        middle = [self.stage_rect(self._number(name)).center() for name in self.movable]
        ways = [abs(point.y() - y) if self.listed else abs(point.x() - x) for point in middle]
        return ways.index(min(ways))

    def _send(self, name: str, place: int) -> None:
        names = self.movable
        if 0 <= place < len(names) and place != names.index(name):
            label = self._stages[self._number(name)].label
            told = tr("{stage} is now number {place} of {count} that can be moved.")
            announce(self, told.format(stage=label, place=place + 1, count=len(names)))
            self.moved.emit(name, place)

    def _drop(self) -> None:
        self._pressed = self._target = None
        self.unsetCursor()
        self.update()
