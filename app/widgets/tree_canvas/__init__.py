"""A canvas for trees of any kind: it knows nodes, states and figures, nothing of where they come from."""

from app.widgets.tree_canvas.canvas import TreeCanvas
from app.widgets.tree_canvas.canvas_state import PRUNED
from app.widgets.tree_canvas.tree_model import STATES, NodeState, TreeModel, TreeNode

__all__ = ["PRUNED", "STATES", "NodeState", "TreeCanvas", "TreeModel", "TreeNode"]
