"""Controllers of downloads and their dialog."""
