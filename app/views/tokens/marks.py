"""Which tokens of a run are marked on the page: the selected one, the newest, those under a wedge."""

from __future__ import annotations

from app.state.run import Run
from app.views.text.arcs import repeats_of
from app.views.text.row_painting import PaintOptions
from app.views.tokens.token_headings import is_waiting


def take_marks(look: PaintOptions, run: Run | None) -> None:
    """Have `look` mark what the run says; nothing without a run."""
    look.selected = run.selected if run else None
    lately = run is not None and (is_waiting(run) or not run.following)
    look.newest = run.cursor - 1 if run and lately and run.cursor else None
    look.hovered = None if run is None else look.hovered
    chosen = run.tokens[run.selected] if run and run.selected is not None and run.selected < len(run.tokens) else None
    look.repeats = repeats_of(chosen)
    look.changed = frozenset(run.changes) if run else frozenset()
    look.apart = {one.step: one.divergence for one in run.compared} if run is not None else {}
    look.branch = run.request.place if run is not None and run.request.is_branch else None
