"""Accessibility of widgets that paint themselves: their role, value, text and parts."""

from typing import cast

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.accessibility.accessible_widget import (
    AccessiblePart,
    AccessibleText,
    AccessibleValue,
    AccessibleWidget,
    Role,
    announce,
)

__all__ = ["AccessiblePart", "AccessibleText", "AccessibleValue", "AccessibleWidget", "Role", "announce"]


def _create_interface(class_name: str, owner: QObject | None) -> QAccessibleInterface | None:
    """Create the accessibility interface that Qt requests for a screen reader."""
    widget: object = owner
    if not isinstance(widget, AccessibleWidget):
        return None
    from decodescope.app.widgets.accessibility.qt_interfaces import (
        AccessibleWidgetInterface,  # import lazily: most sessions have no screen reader
    )

    return widget.accessible_interface() or AccessibleWidgetInterface(cast(QWidget, owner))


QAccessible.installFactory(_create_interface)
