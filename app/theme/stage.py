"""The theme of a stage: type for the last row, colours as far apart as they go."""

from __future__ import annotations

from PySide6.QtCore import QSize

from app.theme.palettes import STAGE_PALETTES
from app.theme.theme import Theme

REFERENCE_SIZE = QSize(1280, 720)
"""The window that the sizes below are for; they grow and shrink with it."""
MIN_FONT_PIXELS = 28
"""Pixels of the smallest letters there."""
SCALE = 2.15
"""Of everything else there: type that is 13 pixels at 100 % is then as large as the smallest."""


def stage_theme(theme: Theme, window_size: QSize) -> Theme:
    """`theme` as it is shown to a hall in a window of that size."""
    share = min(window_size.width() / REFERENCE_SIZE.width(), window_size.height() / REFERENCE_SIZE.height())
    return theme._replace(
        scale=SCALE * share, min_font_pixels=round(MIN_FONT_PIXELS * share), **STAGE_PALETTES[theme.name]
    )
