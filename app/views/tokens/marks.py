"""Which tokens of a run are marked on the page: the selected one, the newest, those under a wedge."""

from __future__ import annotations

from app.state.run import Run
from app.views.text.arcs import blocked_repeats
from app.views.text.row_painting import PaintOptions
from app.views.tokens.token_headings import is_waiting


def apply_run_to_options(options: PaintOptions, run: Run | None) -> None:
    """Have `options` mark what the run says; nothing without a run."""
    options.selected = run.selected if run else None
    lately = run is not None and (is_waiting(run) or not run.is_following)
    options.newest = run.cursor - 1 if run and lately and run.cursor else None
    options.hovered = None if run is None else options.hovered
    chosen = run.tokens[run.selected] if run and run.selected is not None and run.selected < len(run.tokens) else None
    options.repeats = blocked_repeats(chosen)
    options.lead_changes = frozenset(run.leader_changes) if run else frozenset()
    options.divergences = {one.step: one.divergence for one in run.comparisons} if run is not None else {}
    options.branch_position = run.request.place if run is not None and run.request.is_branch else None
