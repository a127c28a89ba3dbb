"""The compare view: one request under several strategies or caches."""
