"""The command palette as it is seen: a field, and below it what was found."""
