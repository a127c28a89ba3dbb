"""The inspector: whatever is selected, explained."""
