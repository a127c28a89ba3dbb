"""Explain why two runs differ: a window with the first difference and the elimination of its causes."""
