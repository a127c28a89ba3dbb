"""Beam search: one search loop that keeps several hypotheses, configured by four strategies."""
