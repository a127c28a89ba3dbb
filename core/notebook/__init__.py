"""Show runs and results in notebooks, and convert them to tables."""
