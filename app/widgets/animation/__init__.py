"""Choices that are seen happening: each a painted widget that knows its end, and a motion that leads there."""
