"""Weights kept in eight or four bits: how they are packed, multiplied, and put where a module had its own."""
