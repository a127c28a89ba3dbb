"""Explain events in words: one sentence per choice."""
