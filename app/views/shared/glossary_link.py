"""Lets a widget be explained by the glossary: one sentence behind its own tip, at the depth of now."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.state.glossary_terms import tooltip_html
from app.widgets.lazy_tooltip import LazyTooltip


def add_glossary_tooltip(
    widget: QWidget, term: str | Callable[[], str], described: QWidget | None = None
) -> LazyTooltip:
    """Explain `widget` by the term of that id, or of what it stands for (`param.top_k`); several stand apart by a
    space. A function is asked anew whenever somebody hovers. `described` bears the accessible description, where that
    is another widget."""
    return LazyTooltip(widget, lambda _place: term if isinstance(term, str) else term(), tooltip_html, described)
