"""The view of branches: runs that took up each other's text, as a tree."""
