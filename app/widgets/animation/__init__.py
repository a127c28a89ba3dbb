"""Animated displays of choices: widgets with a final state and one shared motion to it."""
