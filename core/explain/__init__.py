"""Events in words: one sentence for each choice."""
