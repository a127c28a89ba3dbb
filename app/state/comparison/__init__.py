"""Comparison of runs: candidates, results and differences. Plain data, no Qt."""
