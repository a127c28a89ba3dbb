"""Titles of the themes and languages that can be chosen, for the menus and the settings window."""

from __future__ import annotations

from app.theme.language import SYSTEM
from app.theme.palettes import SCHEMES
from resources.language import LANGUAGES, mark


def scheme_titles() -> tuple[tuple[str, str], ...]:
    """(choice, title in English) of every theme."""
    return tuple(zip(SCHEMES, (mark("Follow the system"), mark("Light"), mark("Dark")), strict=True))


def language_titles() -> tuple[tuple[str, str], ...]:
    """(choice, title): each language by its own name, so that whoever cannot read the others finds it."""
    return ((SYSTEM, mark("Follow the system")), *LANGUAGES.items())
