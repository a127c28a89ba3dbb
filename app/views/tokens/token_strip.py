"""What the strips above the text have in common: lines of it, of which those without room are left out."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.theme import Theme


class TokenViewStrip(QWidget):
    """Hidden until there is something to tell. One overrides `_update_visibility`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._view_height = 10_000
        """Of the view that it stands in."""
        self._column = QVBoxLayout(self)
        self.hide()

    def set_view_height(self, height: int) -> None:
        """Take no more than a share of a view of that height: the text matters more."""
        self._view_height = height
        self._update_visibility()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """As much as there is room for."""
        super().resizeEvent(event)
        self._update_visibility()

    def _update_visibility(self) -> None:
        """Leave out what has no room."""
        raise NotImplementedError

    @property
    def _available_width(self) -> int:
        """Pixels between its margins."""
        margins = self._column.contentsMargins()
        return self.width() - margins.left() - margins.right()

    def _set_spacing(self, theme: Theme, between: int) -> None:
        """Margins, and pixels at 100 % between the lines."""
        self._column.setSpacing(theme.px(between))
        self._column.setContentsMargins(theme.px(26), theme.px(10), theme.px(26), theme.px(2))
