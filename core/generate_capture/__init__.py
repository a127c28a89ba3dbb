"""Capture `generate` calls of any transformers model as runs, in scripts and notebooks and live in a window."""
