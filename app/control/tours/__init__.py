"""Guided tours: the player, its settings, targets and panel."""
