"""Widgets used only while presenting: the caption below the view, the presenter window, the dialog of films."""
