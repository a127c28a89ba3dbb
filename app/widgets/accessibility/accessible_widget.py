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

    spoken_role: ClassVar[Role] = Role.Graphic

    def spoken_parts(self) -> Sequence[AccessiblePart]:
        """What is drawn in it, in the order of reading; may be made as it is asked for."""
        return ()

    def spoken_focus(self) -> int | None:
        """Number of the part that the keyboard is at."""
        return next((number for number, part in enumerate(self.spoken_parts()) if part.selected), None)

    def spoken_value(self) -> AccessibleValue | None:
        """Where it stands, if it is a slider or a meter."""
        return None

    def spoken_text(self) -> AccessibleText | None:
        """What can be read in it word by word, if it is a text."""
        return None

    def spoken_controls(self) -> Sequence[QWidget]:
        """Widgets on top of it, told of behind its parts."""
        return ()

    def accessible_interface(self) -> QAccessibleInterface | None:
        """What Qt gets when a screen reader first asks; None for one that tells what is told here."""
        return None
