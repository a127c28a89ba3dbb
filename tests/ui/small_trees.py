"""A canvas with a small tree, or without one."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from decodescope.app.widgets.tree_canvas import TreeCanvas, TreeNode
from tests.ui.windows import show_widget

SMALL = (
    TreeNode(0, None, "…little", state="root"),
    TreeNode(1, 0, "␣fox", ".50", "−0.69", 0.5),
    TreeNode(2, 0, "␣bear", ".30", "−1.20", 0.3),
    TreeNode(3, 0, "␣boy", ".10", "−2.30", 0.1, "pruned"),
    TreeNode(4, 1, "␣named", ".90", "−0.80", 0.9),
    TreeNode(5, 1, "␣who", ".05", "−3.70", 0.05, "pruned"),
    TreeNode(6, 2, "␣named", ".80", "−1.40", 0.8),
    TreeNode(7, 4, "end", ".40", "−1.70", 0.4, "finished"),
    TreeNode(8, 6, "␣Lily", ".20", "−3.00", 0.2, progress=(1, 3)),
)


def small(qtbot: QtBot) -> TreeCanvas:
    """The small tree at zoom 1, nothing selected, not followed."""
    canvas = empty(qtbot)
    canvas.canvas_state.add_nodes(SMALL)
    canvas.canvas_state.set_best_path([0, 1, 4, 7])
    canvas.navigation.set_follow(False)
    return canvas


def empty(qtbot: QtBot, width: int = 900, height: int = 600) -> TreeCanvas:
    return show_widget(qtbot, TreeCanvas(), width, height)
