"""A text with its colours, for programs that take HTML from the clipboard. No Qt but the theme's colours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.theme.theme import Theme, theme_for
from app.views.text.drafter_underlines import COLOURS
from app.views.text.row_painting import PaintOptions
from core import words

if TYPE_CHECKING:
    from core.events import PromptToken, TokenChosen


def coloured(prompt: Sequence[PromptToken], tokens: Sequence[TokenChosen], tail: str, look: PaintOptions) -> str:
    """The prompt in grey, then each token in the colour of its underline; those of the light theme, for white paper.

    Word processors keep the colour of letters, and underline in the same; few keep a colour of the line alone.
    """
    theme = theme_for("light")
    asked = "".join(token.text for token in prompt if not words.control_name(token.text, token.special))
    written = "".join(_token(token, look, theme) for token in tokens if token.text)
    opening = f'<span style="color:{theme.muted}">{_plain(asked)}</span>'
    return f'<p style="white-space:pre-wrap">{opening}{written}{_plain(tail)}</p>'


def _token(token: TokenChosen, look: PaintOptions, theme: Theme) -> str:
    colour = _colour(token, look, theme)
    if not colour:
        return _plain(token.text)
    return f'<span style="color:{colour};text-decoration:underline">{_plain(token.text)}</span>'


def _colour(token: TokenChosen, look: PaintOptions, theme: Theme) -> str:
    if look.colouring == "origin":
        return theme.color(COLOURS[token.origin]).name()
    return "" if look.colouring == "none" else theme.ramp(look.score(token)).name()


def _plain(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")
