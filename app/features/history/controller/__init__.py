"""Controllers of the run history."""
