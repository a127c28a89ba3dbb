"""The chat view."""
