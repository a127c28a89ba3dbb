"""Downloading a model from the hub: the dialog, its list and the page of the selected model."""
