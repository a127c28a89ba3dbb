"""Plug-ins: their list, templates, and reloading when a file is saved."""
