"""The room around a page of the inspector."""

from __future__ import annotations

from PySide6.QtCore import QMargins

from app.theme.theme import Theme


def page_margins(theme: Theme, scroll_bar_width: int) -> QMargins:
    """Around a page; the right one is narrower by the pixels that a scroll bar has `scroll_bar_width`."""
    margin = theme.px(16)
    return QMargins(margin, theme.px(14), margin - min(margin, scroll_bar_width), margin)
