"""History panel, imported when it is first shown."""
