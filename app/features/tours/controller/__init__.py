"""Controllers of the guided tours: the player, its settings and targets."""
