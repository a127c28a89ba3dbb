"""Controllers: each keeps a few parts of the window in step, and knows only those."""
