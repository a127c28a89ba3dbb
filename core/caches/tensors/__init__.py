"""What the back ends do with tensors; kept apart so that listing them does not load torch."""
