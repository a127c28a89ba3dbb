"""A comparison is a set of runs: which ones, what came of each, and how they differ. Plain data, no Qt."""
