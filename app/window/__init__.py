"""The main window, the assembly of its parts, and its appearance."""
