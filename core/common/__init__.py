"""Helpers of the core that import nothing else of it."""
