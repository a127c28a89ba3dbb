"""Caption of the token at a run's cursor, for presentations. No Qt in here."""

from __future__ import annotations

from typing import NamedTuple

from decodescope.app.state.run import Run
from decodescope.core import explain_token, words
from decodescope.core.events import TokenChosen


class TokenCaption(NamedTuple):
    """Caption of a token: title and reason."""

    token: TokenChosen
    title: str
    """The token and its probability: “ girl” 34 %."""
    sentence: str


def current_caption(run: Run | None) -> TokenCaption | None:
    """Return the caption of the selected token or the one at the cursor; None before the first token."""
    if run is None or not run.cursor or not run.tokens:
        return None
    place = run.selected if run.selected is not None else run.cursor - 1
    return caption_at(run, min(place, len(run.tokens) - 1))


def caption_at(run: Run, index: int) -> TokenCaption:
    """Return the caption of the token at that index of the shown text."""
    token = run.tokens[index]
    title = f"{words.quote(token.piece, token.is_special)}  {words.final_percent(token)}"
    return TokenCaption(token, title, explain_token(token))


def next_caption(run: Run | None) -> TokenCaption | None:
    """Return the caption of the token after the cursor; None at the end."""
    if run is None or run.beams is not None or run.cursor >= len(run.tokens):
        return None
    return caption_at(run, run.cursor)
