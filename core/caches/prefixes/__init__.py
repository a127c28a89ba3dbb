"""Prompt prefixes read by earlier runs: kept, saved and loaded."""
