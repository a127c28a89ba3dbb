"""A dialog through which Tab goes as it is read, whatever order its parts were made in."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from app.widgets.tab_order import TabOrder


class ReadDialog(QDialog):
    """Line by line, each from its beginning, and round again."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._order = TabOrder(self, lambda: (self,))

    def focusNextPrevChild(self, forwards: bool) -> bool:
        """Tab and Shift+Tab."""
        return self._order.go(forwards)
