"""Accessibility of painted widgets: plain descriptions of their parts, the mixin that returns them, and
announcements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QWidget

Role = QAccessible.Role


class AccessiblePart(NamedTuple):
    """A painted element with its own name: a bar, a stage, a token, a round."""

    name: str
    rect: Callable[[], QRect] = QRect
    """Returns the rectangle in widget coordinates; empty if the part is not visible."""
    role: Role = Role.ListItem
    value: str = ""
    selected: bool | None = None
    """None: the part cannot be selected."""
    press: Callable[[], None] | None = None
    """The action of a click on the part."""


class AccessibleValue(NamedTuple):
    """Value of a slider or a meter."""

    value: float
    minimum: float
    maximum: float
    step: float = 1.0
    text: str = ""
    """The spoken value; if empty, the number is used."""
    set_value: Callable[[float], None] | None = None
    """Sets another value; None: read-only."""


class AccessibleText(NamedTuple):
    """A text that can be read word by word. Offsets are Python's (code points)."""

    text: str
    cursor: int
    character_rect: Callable[[int], QRect]
    """Returns the rectangle of the character at an offset, in widget coordinates."""
    move_cursor: Callable[[int], None]
    """Moves the cursor to an offset."""


class AccessibleWidget:
    """Mixin for a QWidget: describes it beyond its accessible name and description.

    None of the methods is called unless a screen reader is active.
    """

    accessible_role: ClassVar[Role] = Role.Graphic

    def accessible_parts(self) -> Sequence[AccessiblePart]:
        """Return the painted parts in reading order. The sequence may create them on access."""
        return ()

    def focused_part(self) -> int | None:
        """Return the index of the part that has the keyboard focus."""
        return next((number for number, part in enumerate(self.accessible_parts()) if part.selected), None)

    def accessible_value(self) -> AccessibleValue | None:
        """Return the value if the widget is a slider or a meter."""
        return None

    def accessible_text(self) -> AccessibleText | None:
        """Return the text if the widget can be read word by word."""
        return None

    def child_controls(self) -> Sequence[QWidget]:
        """Return the widgets on top of this one; they follow its parts."""
        return ()

    def accessible_interface(self) -> QAccessibleInterface | None:
        """Return an interface for Qt to use, or None for the default one."""
        return None


send_accessibility_event = QAccessible.updateAccessibility


def announce(widget: QWidget, text: str, is_urgent: bool = False) -> None:
    """Announce `text` after the current speech, or at once if it is urgent."""
    if not text or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(widget, text)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if is_urgent else politeness.Polite)
    send_accessibility_event(event)
