"""How wide a tab is: the same in the prompt, in the tokens and in formatted answers."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontMetricsF

TAB_COLUMNS = 4
"""Spaces of a tab."""


def tab_distance(font: QFont) -> float:
    """Pixels from one tab stop to the next."""
    return TAB_COLUMNS * QFontMetricsF(font).horizontalAdvance(" ")
