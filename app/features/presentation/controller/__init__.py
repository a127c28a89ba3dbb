"""Controllers of the presentation and of films."""
