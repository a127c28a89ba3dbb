"""Whether a run fits, and what to do when it does not."""
