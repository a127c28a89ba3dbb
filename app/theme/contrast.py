"""How well a colour stands out from the one behind it, as WCAG 2.2 reckons it."""

from __future__ import annotations

from PySide6.QtGui import QColor

MIN_TEXT_CONTRAST = 4.5
"""Least contrast of small type (success criterion 1.4.3)."""
MIN_MARK_CONTRAST = 3.0
"""Least contrast of large type and of marks that mean something (1.4.3, 1.4.11)."""
_STEP = 0.05


def luminance(color: QColor) -> float:
    """Relative luminance, 0 (black) to 1 (white)."""
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    """1 (the same) to 21 (black and white)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over: QColor, under: QColor, opacity: float) -> QColor:
    """`opacity` of one colour on the other, opaque."""
    pairs = ((over.red(), under.red()), (over.green(), under.green()), (over.blue(), under.blue()))
    return QColor(*(round(b + (a - b) * opacity) for a, b in pairs))


def ensure_readable(color: QColor, text: QColor, ground: QColor) -> QColor:
    """`color` moved towards `text` as far as small type on `ground` needs it."""
    share = 1.0
    while share > 0 and contrast(blend(color, text, share), ground) < MIN_TEXT_CONTRAST:
        share -= _STEP
    return blend(color, text, max(0.0, share))
