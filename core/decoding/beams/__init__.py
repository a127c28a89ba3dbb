"""Beams: one machine that keeps several hypotheses, and what its four strategies put into it."""
