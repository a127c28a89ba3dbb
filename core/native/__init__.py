"""Machine code for the quick step, built on this machine by its own compiler. Knows no torch."""
