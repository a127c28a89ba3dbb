"""Text on widgets and in item roles, shown literally.

Qt treats text that looks like HTML as rich text in labels, tooltips, message boxes and item roles: it hides the tags
and opens the files that they name. It treats `&` on buttons, actions and tabs as a mnemonic. Untrusted text (a model's
name, a prompt, a file's name, the cause of an error) goes through this module.
"""

from __future__ import annotations

import textwrap

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QLabel, QToolTip, QWidget

JOINER = "\u2060"
"""A zero-width word joiner; between `<` and a name it keeps Qt from detecting a tag."""
MAX_LINE, WRAPPED_LINE = 120, 100
"""Lengths in characters: tooltip lines longer than the first are wrapped at the second."""
MAX_TOOLTIP = 4_000
"""Maximum characters of a tooltip; a longer one does not fit on a screen."""


def as_plain_text(text: str) -> str:
    """Return `text` so that Qt never treats it as rich text, unchanged if Qt would not anyway.

    Qt decides by the first `<` and by each `&lt;` before it (`Qt::mightBeRichText`).
    """
    before, bracket, rest = text.partition("<")
    if not bracket and "&lt;" not in text:
        return text
    return before.replace("&lt;", f"&{JOINER}lt;") + (f"<{JOINER}{rest}" if _is_tag(rest) else f"{bracket}{rest}")


def _is_tag(rest: str) -> bool:
    """Return whether the text after `<` can begin a tag; `a < b` and `<3` cannot."""
    first = rest.lstrip()[:1]
    return first.isalnum() or first in ("!", "?", "/")


def tooltip(text: str) -> str:
    """Return `text` for `setToolTip` and `ToolTipRole`: plain, in lines that fit on a screen.

    Qt wraps only rich text, so a prompt without line breaks would become a single very wide line.
    """
    if len(text) > MAX_TOOLTIP:
        text = text[: MAX_TOOLTIP - 1] + "…"
    if len(text) > MAX_LINE:
        text = "\n".join(_wrap_line(line) for line in text.split("\n"))
    return as_plain_text(text)


def _wrap_line(line: str) -> str:
    if len(line) <= MAX_LINE:
        return line
    return textwrap.fill(line, WRAPPED_LINE, expand_tabs=False, replace_whitespace=False, drop_whitespace=False)


def rich_tooltip(html: str) -> str:
    """Mark the program's own HTML as intended for `setToolTip`; foreign parts must have gone through `html.escape`."""
    return html


def escape_html(text: str) -> str:
    """Escape `text` for HTML. Same as `html.escape`, whose import takes longer than painting a row."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def might_be_rich(text: str) -> bool:
    """Return whether Qt would show `text` as HTML."""
    from PySide6.QtGui import Qt as Gui  # the function is declared in QtGui

    return Gui.mightBeRichText(text)


def from_plain_text(text: str) -> str:
    """Return the original text of `as_plain_text`."""
    return text.replace(f"<{JOINER}", "<").replace(f"&{JOINER}lt;", "&lt;")


def caption(text: str) -> str:
    """Return `text` for a button, action, menu or tab, where `&` would underline the next letter.

    It is made plain too, because an action's text is also its default tooltip.
    """
    return as_plain_text(text).replace("&", "&&")


def window_title(text: str) -> str:
    """Return `text` for `setWindowTitle`, where `[*]` marks the position of the modified mark."""
    return text.replace("[*]", "[*][*]")


def show_tooltip(position: QPoint, text: str, widget: QWidget, within: QRect | None = None) -> None:
    """Show `text` literally at a screen position; hide the tooltip if it is empty."""
    if within is None:
        QToolTip.showText(position, tooltip(text), widget)
    else:
        QToolTip.showText(position, tooltip(text), widget, within)


def show_rich_tooltip(position: QPoint, html: str, widget: QWidget) -> None:
    """Show the program's own HTML; foreign parts must have gone through `html.escape`."""
    QToolTip.showText(position, html, widget)


class PlainLabel(QLabel):
    """A label that shows its text literally. The program uses no other label, except `RichLabel`."""

    def __init__(
        self, text: str | QWidget | None = "", parent: QWidget | None = None, *, wordWrap: bool = False
    ) -> None:
        """Create the label from a text, a parent, or both, as QLabel does."""
        written = text if isinstance(text, str) else ""
        super().__init__(parent if isinstance(text, str) else text or parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wordWrap)
        if written:
            self.setText(written)


class RichLabel(QLabel):
    """A label for the program's own HTML; foreign parts must have gone through `html.escape`."""

    def __init__(self, html: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        if html:
            self.setText(html)
