"""A canvas for trees of any kind: it knows nodes, states and figures, nothing of where they come from."""

from app.widgets.tree_canvas.canvas import TreeCanvas
from app.widgets.tree_canvas.model import STATES, NodeState, TreeModel, TreeNode
from app.widgets.tree_canvas.stage import PRUNED

__all__ = ["PRUNED", "STATES", "NodeState", "TreeCanvas", "TreeModel", "TreeNode"]
