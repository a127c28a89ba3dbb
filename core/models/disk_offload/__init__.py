"""A model larger than the memory it may take: some of its layers stay on the disk, and are read for each pass."""
