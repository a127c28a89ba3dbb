"""A file for each way to lower latency: its rows, and how one of them is measured."""
