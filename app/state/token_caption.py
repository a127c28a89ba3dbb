"""What was chosen at the cursor of a run, in the few words that a hall can read. No Qt in here."""

from __future__ import annotations

from typing import NamedTuple

from app.state.run import Run
from core import explain_token, words
from core.events import TokenChosen


class TokenCaption(NamedTuple):
    """The token before the cursor, and why."""

    token: TokenChosen
    title: str
    """The token and its share: “ girl” 34 %."""
    sentence: str


def current_caption(run: Run | None) -> TokenCaption | None:
    """The moment at the cursor, or of the token that is picked; None before the first."""
    if run is None or not run.cursor or not run.tokens:
        return None
    place = run.selected if run.selected is not None else run.cursor - 1
    return caption_at(run, min(place, len(run.tokens) - 1))


def caption_at(run: Run, index: int) -> TokenCaption:
    """The moment of the token at that place of the shown text."""
    token = run.tokens[index]
    title = f"{words.quote(token.piece, token.is_special)}  {words.percent(token.probability)}"
    return TokenCaption(token, title, explain_token(token))


def next_caption(run: Run | None) -> TokenCaption | None:
    """What comes next: the moment behind the cursor; None at the end."""
    if run is None or run.beams is not None or run.cursor >= len(run.tokens):
        return None
    return caption_at(run, run.cursor)
