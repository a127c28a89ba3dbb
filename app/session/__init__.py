"""The worker's thread and the one object on the main thread that everything in the window talks to."""
