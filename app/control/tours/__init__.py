"""Guided tours: the player that drives the program, what it points at, and the game of guessing first."""
