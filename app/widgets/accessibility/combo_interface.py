"""A combo box for screen readers: Qt's own gives the choice in place of the name on Linux."""

# Qt takes None for "nobody there"; its stubs do not.
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any, cast

from PySide6.QtGui import QAccessible, QAccessibleActionInterface, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget

from app.widgets.accessibility.accessible_part import Role
from app.widgets.lazy_combo import LazyComboBox


class ComboInterface(QAccessibleWidget):
    """Its name is what is chosen, its value the choice, its child the list; pressing it opens that."""

    def __init__(self, combo: LazyComboBox) -> None:
        super().__init__(combo, Role.ComboBox)

    @property
    def _combo(self) -> LazyComboBox:
        return cast(LazyComboBox, self.widget())

    def text(self, kind: QAccessible.Text) -> str:
        return self._combo.currentText() if kind == QAccessible.Text.Value else super().text(kind)

    def childCount(self) -> int:
        return 1

    def child(self, index: int) -> QAccessibleInterface | None:
        return QAccessible.queryAccessibleInterface(self._combo.view()) if index == 0 else None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return 0 if child.object() is self._combo.view() else -1

    def state(self) -> QAccessible.State:
        state: Any = super().state()
        state.expandable = state.hasPopup = True
        state.expanded = self._combo.is_open
        state.collapsed = not state.expanded
        return state

    def actionNames(self) -> list[str]:
        names = QAccessibleActionInterface
        return [names.showMenuAction(), names.pressAction()]

    def doAction(self, name: str) -> None:
        if name in self.actionNames():
            self._combo.hidePopup() if self._combo.is_open else self._combo.showPopup()
