"""Serve the selected model to other programs; each request is a run of this window."""
