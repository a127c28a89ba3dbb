"""The tree view: beams."""
