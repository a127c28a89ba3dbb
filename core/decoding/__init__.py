"""Shared parts of the decoding strategies: settings, processor pipeline, forward passes, stopping and step events."""
