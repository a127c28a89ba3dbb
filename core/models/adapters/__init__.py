"""Adapters: small sets of weights that change what a model computes (LoRA)."""
