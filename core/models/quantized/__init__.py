"""Weights in 8 or 4 bits: packing, multiplication, and replacement of a module's layers."""
