"""Speculative decoding: drafters propose a tree of tokens, the target scores it in one pass, and a verifier accepts a
path.
"""
