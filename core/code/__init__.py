"""A run as a short script: for transformers alone, or for this core."""
