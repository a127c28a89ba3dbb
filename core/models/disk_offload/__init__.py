"""Disk offload: some layers of a model larger than memory stay on disk and are read for each pass."""
