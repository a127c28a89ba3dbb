"""Sounds and pictures on their way into a model: read once, before the first token."""
