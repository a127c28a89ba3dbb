"""Explain why two runs differ: the first difference, and its cause by elimination."""
