"""Widgets that add and show audio and images."""
