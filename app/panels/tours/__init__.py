"""Widgets of the guided tours and the guessing game: bottom panels and a spotlight ring."""
