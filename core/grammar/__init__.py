"""Constrained generation: a JSON schema, a regular expression, a Lark grammar or a choice, enforced token by token.

`llguidance` (an extra) decides which tokens can still lead to a text of the grammar; it is imported only once a run
has a grammar. `core/processors/grammar.py` turns it into a processor.
"""
