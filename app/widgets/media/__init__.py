"""Widgets for audio and images."""
