"""The worker thread, and the session: the main thread's interface to it."""
