"""Which part of a tree is worth seeing: its newest nodes, or what the reader looks at."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.tree_style import DIMMED

MAX_NEWEST_FRACTION = 0.8
"""Share of the view that the newest boxes may take to be shown together."""


def newest_rect(state: CanvasState, view: QRectF) -> QRectF:
    """Around the newest boxes that live; around one of them, and some room, when they do not fit into the `view`."""
    model, scene = state.scene.model, state.scene
    column = scene.layout.nodes_in(scene.last_depth)
    living = [node for node in column if model.nodes[node].state not in DIMMED] or column
    around = scene.box(living[0]).united(scene.box(living[-1]))
    if around.height() <= view.height() * MAX_NEWEST_FRACTION and around.width() <= view.width() * MAX_NEWEST_FRACTION:
        return around
    leading = set(state.style.best_path).intersection(living)
    box = scene.box(next(iter(leading), living[len(living) // 2]))
    room = (view.width() * 0.3, 0.0) if state.is_top_down else (0.0, view.height() * 0.3)
    return box.adjusted(-room[0], -room[1], room[0], room[1])


def focus_rect(state: CanvasState, view: QRectF) -> QRectF:
    """Around the selected node, else the end of the leading path, else the newest nodes."""
    scene, style = state.scene, state.style
    if style.selected is not None and scene.is_shown(style.selected):
        return scene.box(style.selected)
    shown = [node for node in style.best_path if scene.is_shown(node)]
    return scene.box(shown[-1]) if shown else newest_rect(state, view)
