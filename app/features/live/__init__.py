"""Runs of scripts, received while they happen."""
