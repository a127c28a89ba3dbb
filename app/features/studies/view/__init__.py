"""Widgets of the studies' window."""
