"""Checks of arguments, and suggestions for misspelled names."""
