"""Runs that are kept: written to files, read back, shown elsewhere."""
