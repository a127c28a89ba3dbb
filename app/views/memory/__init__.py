"""The memory view: the cache's bytes."""
