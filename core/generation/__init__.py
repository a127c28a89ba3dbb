"""Load models, run requests, score texts and replay steps: the implementation of the public API."""
