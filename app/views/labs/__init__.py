"""Rooms of their own, beside the views of a run: each in a window that is made when it is first opened."""
