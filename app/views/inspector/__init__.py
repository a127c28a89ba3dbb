"""The inspector: explains the selected token or node."""
