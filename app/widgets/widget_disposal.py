"""Widgets that are not wanted any more."""

from PySide6.QtWidgets import QWidget


def delete_widget(widget: QWidget) -> None:
    """Take it from its parent and delete it with the next event."""
    widget.hide()  # its layout may be about to show it: without a parent it would become a window of its own
    widget.setParent(None)
    widget.deleteLater()
