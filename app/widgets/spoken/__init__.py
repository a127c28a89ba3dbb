"""What a screen reader is told of widgets that paint themselves: their role, value, text and parts."""

from typing import cast

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QWidget

from app.widgets.spoken.live import announce
from app.widgets.spoken.part import Part, Passage, Role, Value
from app.widgets.spoken.spoken import Spoken

__all__ = ["Part", "Passage", "Role", "Spoken", "Value", "announce"]


def _make(class_name: str, owner: QObject | None) -> QAccessibleInterface | None:
    """What Qt asks of, in the name of a screen reader."""
    spoken: object = owner
    if not isinstance(spoken, Spoken):
        return None
    from app.widgets.spoken.interface import SpokenInterface  # most never have one

    return spoken.accessible_interface() or SpokenInterface(cast(QWidget, owner))


QAccessible.installFactory(_make)
