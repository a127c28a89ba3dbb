"""Widgets used only while presenting: the caption below the view and the presenter window."""
