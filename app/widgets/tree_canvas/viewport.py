"""The room that a widget gives a tree: its margins, and what is moved to use all of it."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QWidget

from app.widgets.tree_canvas.canvas_state import CanvasState

FIT_MARGIN = 28
"""Pixels at 100 % around a tree that is fitted."""
EDGE_MARGIN = 40
"""Pixels at 100 % from the edge within which a box does not count as in sight."""


def fit_area(state: CanvasState, widget: QWidget) -> QRectF:
    """The widget less the margins around a tree that is fitted."""
    margin = FIT_MARGIN * state.style.theme.scale
    return QRectF(margin, margin, max(1.0, widget.width() - 2 * margin), max(1.0, widget.height() - 2 * margin))


def min_zoom(state: CanvasState) -> float:
    """Zoom below which letters would be smaller than the theme allows; 0 where it does not say."""
    return 1.0 if state.style.theme.min_font_pixels else 0.0


def scroll_to_rect(state: CanvasState, widget: QWidget, rect: QRectF) -> bool:
    """Move no further than needed for `rect`, of the canvas, to be in sight; whether that was anywhere."""
    width, height = widget.width(), widget.height()
    margin = min(EDGE_MARGIN * state.style.theme.scale, width / 6, height / 6)
    return state.camera.reveal(rect, QRectF(widget.rect()).adjusted(margin, margin, -margin, -margin))


def fill_view(state: CanvasState, widget: QWidget) -> None:
    """Show no empty ground above or below (beside, where the tree grows down) that the tree could fill."""
    camera, bounds = state.camera, state.scene.bounds()
    margin = fit_area(state, widget).x() / camera.zoom
    width, height = widget.width() / camera.zoom, widget.height() / camera.zoom
    if state.is_top_down:
        camera.x = clamp_or_center(camera.x, bounds.left() - margin, bounds.right() + margin - width)
    else:
        camera.y = clamp_or_center(camera.y, bounds.top() - margin, bounds.bottom() + margin - height)


def clamp_or_center(value: float, first: float, last: float) -> float:
    """`value` inside [first, last]; their middle where there is no inside."""
    return (first + last) / 2 if last < first else min(max(value, first), last)
