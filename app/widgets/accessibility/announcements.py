"""Telling a screen reader at work what has just happened."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

send_accessibility_event = QAccessible.updateAccessibility


def announce(widget: QWidget, text: str, is_urgent: bool = False) -> None:
    """Have `text` said: when the reader has finished what it says, or at once where it is `is_urgent`."""
    if not text or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(widget, text)
    politeness = QAccessible.AnnouncementPoliteness
    event.setPoliteness(politeness.Assertive if is_urgent else politeness.Polite)
    send_accessibility_event(event)
