"""Tensor code of the cache backends, kept apart so that listing the backends does not load torch."""
