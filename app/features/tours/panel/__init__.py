"""Widgets of the guided tours: the panel, the list of tours and a spotlight ring."""
