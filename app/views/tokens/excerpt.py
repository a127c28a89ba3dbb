"""The text of the token view as words to be taken elsewhere."""

from __future__ import annotations

from app.views.base import Excerpt
from app.views.tokens.area import TokenArea


def token_excerpt(area: TokenArea) -> Excerpt | None:
    """What was written up to the cursor; with its colours, the prompt before it too. None before there is any."""
    run = area.run
    if run is None or not run.tokens:
        return None
    from app.views.text.markup import coloured_html  # not before something is taken along

    ended = run.sequence.finished if run.cursor >= len(run.tokens) else None
    tail = ended.tail if ended else ""
    return Excerpt(run.text, coloured_html(run.before, run.tokens[: run.cursor], tail, area.paint_options))
