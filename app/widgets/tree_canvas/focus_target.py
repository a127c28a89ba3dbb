"""Which part of a tree is worth seeing: its newest nodes, or what the reader looks at."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.tree_style import DIMMED

MOST = 0.8
"""Share of the view that the newest boxes may take to be shown together."""


def newest(stage: CanvasState, view: QRectF) -> QRectF:
    """Around the newest boxes that live; around one of them, and some room, when they do not fit into the `view`."""
    model, scene = stage.scene.model, stage.scene
    column = scene.layout.nodes_in(scene.last)
    living = [node for node in column if model.nodes[node].state not in DIMMED] or column
    around = scene.box(living[0]).united(scene.box(living[-1]))
    if around.height() <= view.height() * MOST and around.width() <= view.width() * MOST:
        return around
    leading = set(stage.look.best).intersection(living)
    box = scene.box(next(iter(leading), living[len(living) // 2]))
    room = (view.width() * 0.3, 0.0) if stage.down else (0.0, view.height() * 0.3)
    return box.adjusted(-room[0], -room[1], room[0], room[1])


def subject(stage: CanvasState, view: QRectF) -> QRectF:
    """Around the selected node, else the end of the leading path, else the newest nodes."""
    scene, look = stage.scene, stage.look
    if look.selected is not None and scene.shown(look.selected):
        return scene.box(look.selected)
    shown = [node for node in look.best if scene.shown(node)]
    return scene.box(shown[-1]) if shown else newest(stage, view)
