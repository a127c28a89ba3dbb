"""A canvas for trees of any kind: it knows nodes, states and figures, nothing of where they come from."""

from app.widgets.tree_canvas.canvas import PRUNED, TreeCanvas
from app.widgets.tree_canvas.model import STATES, TreeModel, TreeNode

__all__ = ["PRUNED", "STATES", "TreeCanvas", "TreeModel", "TreeNode"]
