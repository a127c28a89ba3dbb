"""Guided tours: tour files, their measures, the panel and the player."""
