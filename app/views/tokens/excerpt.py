"""Text of the token view for the clipboard and for export, plain and as coloured HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.views.base import Excerpt
from decodescope.app.views.text.row_painting import PaintOptions
from decodescope.app.views.text.token_decorations import ORIGIN_COLOURS
from decodescope.app.views.tokens.area import TokenArea
from decodescope.core import words

if TYPE_CHECKING:
    from decodescope.core.events import PromptToken, TokenChosen


def coloured_html(
    prompt: Sequence[PromptToken], tokens: Sequence[TokenChosen], tail: str, options: PaintOptions
) -> str:
    """Return the prompt in grey, then each token in its underline colour, from the light theme as paper is white.

    Word processors keep the colour of letters and underline in the same colour; few keep the colour of an underline
    alone.
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


def token_excerpt(area: TokenArea) -> Excerpt | None:
    """Return the text up to the cursor, with a coloured version that includes the prompt; None before the first
    token.
    """
    run = area.run
    if run is None or not run.tokens:
        return None

    ended = run.sequence.finished if run.cursor >= len(run.tokens) else None
    tail = ended.tail if ended else ""
    return Excerpt(run.text, coloured_html(run.before, run.tokens[: run.cursor], tail, area.paint_options))
