"""Text on widgets and in item roles, shown as it is written.

Qt takes text that looks like HTML for rich text in labels, tooltips, message boxes and item roles: it then hides the
tags and opens the files that they name. It takes `&` in the text of a button, an action or a tab for a mnemonic. What
comes from elsewhere (a model's name, a prompt, a file's name, a cause of an error) goes through this module.
"""

from __future__ import annotations

import textwrap

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QLabel, QToolTip, QWidget

JOINER = "\u2060"
"""Takes no room and is not drawn; between `<` and a name it keeps Qt from seeing a tag."""
MAX_LINE, WRAPPED_LINE = 120, 100
"""Characters: a line of a tooltip that is longer than the first is broken into lines of the second."""
MAX_TOOLTIP = 4_000
"""Characters of a tooltip; a longer one does not fit on a screen."""


def as_plain_text(text: str) -> str:
    """Return `text` so that Qt never takes it for rich text; the same text where Qt would not do so anyway.

    Qt decides by the first `<` and by each `&lt;` before it (`Qt::mightBeRichText`).
    """
    before, bracket, rest = text.partition("<")
    if not bracket and "&lt;" not in text:
        return text
    return before.replace("&lt;", f"&{JOINER}lt;") + (f"<{JOINER}{rest}" if _is_tag(rest) else f"{bracket}{rest}")


def _is_tag(rest: str) -> bool:
    """Whether what follows `<` can begin a tag: `a < b` and `<3` cannot, and stay as they are."""
    first = rest.lstrip()[:1]
    return first.isalnum() or first in ("!", "?", "/")


def tooltip(text: str) -> str:
    """Return `text` for `setToolTip` and `ToolTipRole`: plain, in lines that fit on a screen.

    Qt wraps only rich text, so that a prompt without line breaks would become one line as wide as the desktop.
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
    """Mark HTML that the program has made as meant for `setToolTip`; foreign parts have gone through `html.escape`."""
    return html


def escape_html(text: str) -> str:
    """Return `text` as a part of HTML. `html.escape` does the same and takes longer to import than a row to draw."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def might_be_rich(text: str) -> bool:
    """Whether Qt shows `text` as HTML."""
    from PySide6.QtGui import Qt as Gui  # the function is declared there

    return Gui.mightBeRichText(text)


def from_plain_text(text: str) -> str:
    """Return the text of which `as_plain_text` made `text`."""
    return text.replace(f"<{JOINER}", "<").replace(f"&{JOINER}lt;", "&lt;")


def caption(text: str) -> str:
    """Return `text` for a button, an action, a menu or a tab, where `&` would underline the next letter.

    It is made plain, too: the text of an action is its tooltip unless it has another one.
    """
    return as_plain_text(text).replace("&", "&&")


def window_title(text: str) -> str:
    """Return `text` for `setWindowTitle`, which takes `[*]` for the place of the mark of unsaved changes."""
    return text.replace("[*]", "[*][*]")


def show_tooltip(at: QPoint, text: str, widget: QWidget, within: QRect | None = None) -> None:
    """Show `text` as written at a place of the screen; hide the tooltip where it is empty."""
    _show_text(at, tooltip(text), widget, within)


def show_rich_tooltip(at: QPoint, html: str, widget: QWidget, within: QRect | None = None) -> None:
    """Show HTML that the program has made; every foreign part of it has gone through `html.escape`."""
    _show_text(at, html, widget, within)


def _show_text(at: QPoint, text: str, widget: QWidget, within: QRect | None) -> None:
    if within is None:
        QToolTip.showText(at, text, widget)
    else:
        QToolTip.showText(at, text, widget, within)


class PlainLabel(QLabel):
    """A label that shows its text as it is written. The program makes no other, except `RichLabel`."""

    def __init__(
        self, text: str | QWidget | None = "", parent: QWidget | None = None, *, wordWrap: bool = False
    ) -> None:
        """Take a text, a parent, or both, as QLabel does."""
        written = text if isinstance(text, str) else ""
        super().__init__(parent if isinstance(text, str) else text or parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wordWrap)
        if written:
            self.setText(written)


class RichLabel(QLabel):
    """A label of HTML that the program has made; every foreign part of it has gone through `html.escape`."""

    def __init__(self, html: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.RichText)
        if html:
            self.setText(html)
