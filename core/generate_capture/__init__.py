"""Capture `generate` calls of any transformers model as runs with the events of this program."""
