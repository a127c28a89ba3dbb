"""Sounds and pictures, drawn."""
