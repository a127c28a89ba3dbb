"""State without widgets: runs, requests, trees, rounds, cache history and conversation."""
