"""Controller of the command palette."""
