"""What of a widget can be seen: nothing of it that a part around it has scrolled away or cut off."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QWidget


def visible_rect(widget: QWidget, rect: QRect, ancestor: QWidget) -> QRect:
    """The stretch `rect` of `widget` as far as it is to be seen, in the pixels of `ancestor`, which holds the widget; empty
    where it is not."""
    seen, here = rect.intersected(widget.rect()), widget
    while here is not ancestor and not seen.isEmpty():
        above = here.parentWidget()
        if above is None or not here.isVisible():
            return QRect()
        seen = seen.translated(here.pos()).intersected(above.rect())
        here = above
    return seen
