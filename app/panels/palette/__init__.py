"""The command palette's widgets: a search field and the list of results."""
