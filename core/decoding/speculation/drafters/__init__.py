"""Drafters: a smaller model, the text so far, the target's lower layers, and others."""
