"""Models: finding, checking, loading them, and their text."""
