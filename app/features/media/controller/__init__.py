"""Controllers of the prompt's media."""
