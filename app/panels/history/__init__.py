"""The panel of kept runs; imported when it is first shown."""
