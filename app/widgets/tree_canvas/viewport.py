"""The room that a widget gives a tree: its margins, and what is moved to use all of it."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QWidget

from app.widgets.tree_canvas.canvas_state import CanvasState

MARGIN = 28
"""Pixels at 100 % around a tree that is fitted."""
NEAR = 40
"""Pixels at 100 % from the edge within which a box does not count as in sight."""


def room_of(stage: CanvasState, widget: QWidget) -> QRectF:
    """The widget less the margins around a tree that is fitted."""
    margin = MARGIN * stage.look.theme.scale
    return QRectF(margin, margin, max(1.0, widget.width() - 2 * margin), max(1.0, widget.height() - 2 * margin))


def smallest(stage: CanvasState) -> float:
    """Zoom below which letters would be smaller than the theme allows; 0 where it does not say."""
    return 1.0 if stage.look.theme.least else 0.0


def reveal(stage: CanvasState, widget: QWidget, rect: QRectF) -> bool:
    """Move no further than needed for `rect`, of the canvas, to be in sight; whether that was anywhere."""
    width, height = widget.width(), widget.height()
    margin = min(NEAR * stage.look.theme.scale, width / 6, height / 6)
    return stage.camera.reveal(rect, QRectF(widget.rect()).adjusted(margin, margin, -margin, -margin))


def fill(stage: CanvasState, widget: QWidget) -> None:
    """Show no empty ground above or below (beside, where the tree grows down) that the tree could fill."""
    camera, bounds = stage.camera, stage.scene.bounds()
    margin = room_of(stage, widget).x() / camera.zoom
    width, height = widget.width() / camera.zoom, widget.height() / camera.zoom
    if stage.down:
        camera.x = within(camera.x, bounds.left() - margin, bounds.right() + margin - width)
    else:
        camera.y = within(camera.y, bounds.top() - margin, bounds.bottom() + margin - height)


def within(place: float, first: float, last: float) -> float:
    """`place` inside [first, last]; their middle where there is no inside."""
    return (first + last) / 2 if last < first else min(max(place, first), last)
