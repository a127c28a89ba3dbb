"""The first page: what the program is, and three ways in."""
