"""Controllers of the lab windows."""
