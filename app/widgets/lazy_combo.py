"""A combo box whose list is made ready when it is opened, not with the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QWidget

from app.widgets.inputs import ComboBox

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView


class LazyComboBox(ComboBox):
    """A list is eleven widgets of which nothing is seen at first. Qt makes them with the first style that the box gets,
    or with its first choice; here they hear of no style, and get nothing of their own, before somebody wants them."""

    _has_list = False

    @property
    def is_open(self) -> bool:
        """Whether the list is on the screen."""
        return self._has_list and self.view().isVisible()

    def prepare_list(self) -> None:
        """What is to be set of the list before it is seen the first time."""

    def view(self) -> QAbstractItemView:
        """The list, made now if it was not there."""
        if not self._has_list:
            self._has_list = True
            self.prepare_list()
        return super().view()

    def showPopup(self) -> None:
        self.view()
        super().showPopup()

    def changeEvent(self, event: QEvent) -> None:
        """Of another style the list hears when it is there."""
        if self._has_list or event.type() != QEvent.Type.StyleChange:
            super().changeEvent(event)
        else:
            QWidget.changeEvent(self, event)
