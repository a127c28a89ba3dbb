"""Heads that guess from a model's own hidden states: those in its checkpoint (MTP), and EAGLE's beside it."""
