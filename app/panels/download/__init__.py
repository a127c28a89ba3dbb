"""Getting a model from the hub: the dialog, its list, and the page on the picked model."""
