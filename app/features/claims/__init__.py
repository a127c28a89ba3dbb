"""Claim cards: published claims about strategies, processors and caches, tested on the selected model."""
