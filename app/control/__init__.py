"""Controllers: each keeps a few parts of the window in sync and depends only on those."""
