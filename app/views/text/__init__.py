"""Tokens as text: their pieces, flow, paint and words; shared by the views that show text."""
