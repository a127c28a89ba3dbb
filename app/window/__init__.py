"""The window itself: its frame, the assembly of its parts, and how it looks."""
