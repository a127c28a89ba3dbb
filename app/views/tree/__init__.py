"""The tree view: beams and samples as trees."""
