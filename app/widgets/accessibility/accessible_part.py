"""What a painted widget says of itself, as plain values: its parts, its value, its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible

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
