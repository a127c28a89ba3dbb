"""Tokens as text: pieces, line flow, painting and wording, shared by the views that show text."""
