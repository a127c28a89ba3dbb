"""Image and audio inputs of a model, processed once before the first token."""
