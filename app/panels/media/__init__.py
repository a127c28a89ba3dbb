"""Sounds and pictures that go with a prompt: what takes them, and what shows them."""
