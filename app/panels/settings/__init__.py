"""Sections of the settings window, one subject each; every section emits `changed` when a setting changes."""
