"""Pages of the window “Why do they differ?”."""
