"""Audio and images attached to a prompt: the widgets that add and show them."""
