"""Texts by rule: a JSON schema, a regular expression, a Lark grammar or a choice of words, kept token by token.

`llguidance` (an extra) judges which tokens can still lead to a text of the grammar; nothing imports it before a run
has a grammar. `core/processors/grammar.py` makes a stage of the funnel of it.
"""
