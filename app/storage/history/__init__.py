"""Runs that are kept: one SQLite file that lists them, the recordings beside it, and those that are under way."""
