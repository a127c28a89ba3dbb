"""Find, check and load models, and convert between text and tokens."""
