"""Inspect one step on request: each layer's prediction, the parts of the text it depends on, and the attention.

Runs have no extra cost.
"""
