"""Speculation: drafters propose a tree of tokens, the target scores it in one pass, a verifier keeps a path."""
