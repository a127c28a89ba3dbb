"""The words below the view, on the stage and in a film of it."""

from __future__ import annotations

from app.state.run import Run
from app.state.token_caption import TokenCaption
from app.views.base import View
from resources.language import tr, trn


def caption_title(now: TokenCaption | None) -> str:
    """What was chosen."""
    return now.title if now is not None else ""


def caption_text(run: Run | None, view: View, now: TokenCaption | None) -> str:
    """Why, of what the view speaks of; before the first token, what there is to say then."""
    return view.presentation_caption() or (now.sentence if now is not None else initial_caption(run))


def initial_caption(run: Run | None) -> str:
    """Before anything has been chosen."""
    if run is None:
        return tr("Nothing has been written yet. Space begins.")
    if run.outcome is not None and run.outcome.error is not None:
        return run.outcome.error.cause
    if run.prompt and run.started is not None and not run.started.engine:
        count = len(run.before)
        text = trn("The model has read {count:,} token.", "The model has read {count:,} tokens.", count)
        return text.format(count=count)
    return tr("The model reads.")
