"""A canvas for trees of any kind: it shows nodes, states and figures, independent of their origin."""

from app.widgets.tree_canvas.canvas import TreeCanvas
from app.widgets.tree_canvas.canvas_state import PRUNED
from app.widgets.tree_canvas.tree_model import STATES, NodeState, TreeModel, TreeNode

__all__ = ["PRUNED", "STATES", "NodeState", "TreeCanvas", "TreeModel", "TreeNode"]
