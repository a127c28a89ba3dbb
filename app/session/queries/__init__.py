"""Queries: requests to the worker besides runs, each class in a module of its own."""
