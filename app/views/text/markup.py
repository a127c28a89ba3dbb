"""A text with its colours, for programs that take HTML from the clipboard. No Qt but the theme's colours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.theme.theme import Theme, theme_for
from app.views.text.drafter_underlines import ORIGIN_COLOURS
from app.views.text.row_painting import PaintOptions
from core import words

if TYPE_CHECKING:
    from core.events import PromptToken, TokenChosen


def coloured_html(
    prompt: Sequence[PromptToken], tokens: Sequence[TokenChosen], tail: str, options: PaintOptions
) -> str:
    """The prompt in grey, then each token in the colour of its underline; those of the light theme, for white paper.

    Word processors keep the colour of letters, and underline in the same; few keep a colour of the line alone.
    """
    theme = theme_for("light")
    prompt_text = "".join(token.text for token in prompt if not words.control_name(token.text, token.special))
    written = "".join(_token_html(token, options, theme) for token in tokens if token.text)
    opening = f'<span style="color:{theme.muted}">{_escape_html(prompt_text)}</span>'
    return f'<p style="white-space:pre-wrap">{opening}{written}{_escape_html(tail)}</p>'


def _token_html(token: TokenChosen, options: PaintOptions, theme: Theme) -> str:
    colour = _colour(token, options, theme)
    if not colour:
        return _escape_html(token.text)
    return f'<span style="color:{colour};text-decoration:underline">{_escape_html(token.text)}</span>'


def _colour(token: TokenChosen, options: PaintOptions, theme: Theme) -> str:
    if options.colouring == "origin":
        return theme.color(ORIGIN_COLOURS[token.origin]).name()
    return "" if options.colouring == "none" else theme.ramp(options.score(token)).name()


def _escape_html(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")
