"""The download dialog, its list and the page of the selected model."""
