"""A canvas for trees of any kind: it shows nodes, states and figures, independent of their origin."""

from decodescope.app.widgets.tree_canvas.canvas import TreeCanvas
from decodescope.app.widgets.tree_canvas.canvas_state import PRUNED
from decodescope.app.widgets.tree_canvas.tree_model import STATES, NodeState, TreeModel, TreeNode

__all__ = ["PRUNED", "STATES", "NodeState", "TreeCanvas", "TreeModel", "TreeNode"]
