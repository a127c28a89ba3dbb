"""Welcome page: what the program is, and three ways to start."""
