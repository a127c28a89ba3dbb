"""Reading, recording and playing media."""
