"""Show how likely an answer is, and which settings wrote a text: a window with a page for each."""
