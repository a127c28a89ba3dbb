"""The mixin that gives a widget a voice of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from PySide6.QtGui import QAccessibleInterface
from PySide6.QtWidgets import QWidget

from app.widgets.accessibility.accessible_part import AccessiblePart, AccessibleText, AccessibleValue, Role


class AccessibleWidget:
    """Mixed into a QWidget: what is told of it beside its accessible name and description.

    Nothing here is asked before a screen reader is at work.
    """

    accessible_role: ClassVar[Role] = Role.Graphic

    def accessible_parts(self) -> Sequence[AccessiblePart]:
        """What is drawn in it, in the order of reading; may be made as it is asked for."""
        return ()

    def focused_part(self) -> int | None:
        """Number of the part that the keyboard is at."""
        return next((number for number, part in enumerate(self.accessible_parts()) if part.selected), None)

    def accessible_value(self) -> AccessibleValue | None:
        """Where it stands, if it is a slider or a meter."""
        return None

    def accessible_text(self) -> AccessibleText | None:
        """What can be read in it word by word, if it is a text."""
        return None

    def child_controls(self) -> Sequence[QWidget]:
        """Widgets on top of it, told of behind its parts."""
        return ()

    def accessible_interface(self) -> QAccessibleInterface | None:
        """What Qt gets when a screen reader first asks; None for one that tells what is told here."""
        return None
