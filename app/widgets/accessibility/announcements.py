"""Telling a screen reader at work what has just happened."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

tell = QAccessible.updateAccessibility


def announce(widget: QWidget, words: str, urgent: bool = False) -> None:
    """Have `words` said: when the reader has finished what it says, or at once where it is `urgent`."""
    if not words or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(widget, words)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if urgent else politeness.Polite)
    tell(event)
