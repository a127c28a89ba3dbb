"""Watermark schemes, and the test that detects them."""
