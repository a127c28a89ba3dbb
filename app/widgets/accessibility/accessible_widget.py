"""Accessibility of painted widgets: plain descriptions of their parts, the mixin that returns them, and announcements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QWidget

Role = QAccessible.Role


class AccessiblePart(NamedTuple):
    """Something drawn that has a name of its own: a bar, a stage, a token, a round."""

    name: str
    rect: Callable[[], QRect] = QRect
    """Where it is drawn, in the widget's pixels; empty where it is not in sight."""
    role: Role = Role.ListItem
    value: str = ""
    selected: bool | None = None
    """None: it cannot be."""
    press: Callable[[], None] | None = None
    """What a click on it does."""


class AccessibleValue(NamedTuple):
    """Where a slider or a meter stands."""

    value: float
    minimum: float
    maximum: float
    step: float = 1.0
    text: str = ""
    """How it is said; the bare number where nothing stands here."""
    set_value: Callable[[float], None] | None = None
    """Takes another value; None: it can only be read."""


class AccessibleText(NamedTuple):
    """A text that can be read word by word. Offsets are Python's (code points)."""

    text: str
    cursor: int
    character_rect: Callable[[int], QRect]
    """Where the character at an offset is drawn, in the widget's pixels."""
    move_cursor: Callable[[int], None]
    """Puts the cursor at an offset."""


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


send_accessibility_event = QAccessible.updateAccessibility


def announce(widget: QWidget, text: str, is_urgent: bool = False) -> None:
    """Have `text` said: when the reader has finished what it says, or at once where it is `is_urgent`."""
    if not text or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(widget, text)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if is_urgent else politeness.Polite)
    send_accessibility_event(event)
