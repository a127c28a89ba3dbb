"""The program's own fonts: the interface in Inter and Noto Sans SC, code in JetBrains Mono.

The files are in `resources/fonts/`; `packaging/fonts.py` makes them. With them a text has the same width on every
machine. Characters that they lack, such as those of other scripts, come from the system's fonts.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtGui import QFont, QFontDatabase, QGuiApplication

from decodescope import resources

SANS, CHINESE, MONOSPACED = "Decodescope Sans", "Decodescope Sans SC", "Decodescope Mono"
MORE_CHINESE = "Decodescope Sans SC More"
"""Common characters that the program's own texts do not use."""
TYPE_SCALE = (11, 12, 13, 15, 18, 22)
"""Sizes of text at 100 %, in pixels: captions, details, controls, reading, tokens and headings, titles."""


@cache
def register_fonts() -> None:
    """Make the font files known to Qt, in about a millisecond: it reads outlines when it draws them. In place of a file
    that cannot be read, the system's fonts are used.
    """
    for path in sorted(resources.path("fonts").glob("*.ttf")):
        QFontDatabase.addApplicationFont(str(path))


def interface_families() -> list[str]:
    """Return the families of interface text, in the order in which a character is searched for."""
    register_fonts()
    return [SANS, CHINESE, MORE_CHINESE, MONOSPACED]


def monospaced_families() -> list[str]:
    """Return the families of code."""
    register_fonts()
    return [MONOSPACED, SANS, CHINESE, MORE_CHINESE]


_SUBSTITUTES = {
    SANS: f"{SANS}, Inter, Noto Sans SC, sans-serif",
    CHINESE: f"{CHINESE}, Noto Sans SC, sans-serif",
    MONOSPACED: f"{MONOSPACED}, JetBrains Mono, monospace",
}


def substitutes(family: str) -> str:
    """Return the fonts for a picture with text that is opened on another machine, or "" for a foreign family."""
    return _SUBSTITUTES.get(family.partition(",")[0].strip().strip("'"), "")


def make_font(pixels: int, weight: int = 400, tabular: bool = False) -> QFont:
    """Return the interface font; `tabular` gives all digits the same width."""
    font = QFont()
    font.setFamilies(interface_families())
    font.setPixelSize(pixels)
    font.setWeight(QFont.Weight(weight))
    # Fits letters to the pixels of a line, whatever the desktop chooses, but leaves their widths as they are.
    font.setHintingPreference(QFont.HintingPreference.PreferVerticalHinting)
    if tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font


def set_application_font() -> None:
    """Make the interface font that of the application. Style sheets change its size and weight only."""
    font = make_font(TYPE_SCALE[2])
    if QGuiApplication.font() != font:
        QGuiApplication.setFont(font)
