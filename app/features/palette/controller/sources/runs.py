"""Runs: reopen one of the latest saved runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.resources.language import tr

MAX_RUNS = 24
"""Maximum number of runs; the history panel finds the others."""


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield saved runs, pinned ones first."""
    from decodescope.app.features.history.panel import history_wording
    from decodescope.app.features.history.store.history_record import HistoryRecord

    nothing: list[HistoryRecord] = []
    shown = context.session.run.id if context.session.run is not None else ""
    busy = tr("A run is in progress.") if context.session.busy else ""
    for record in context.history.query(lambda store: store.records(store.ids(max_count=MAX_RUNS)), nothing):
        yield PaletteEntry(
            f"run.{record.id}",
            record.name,
            tr("Run"),
            partial(context.history.show, record.id),
            about=f"{history_wording.time_text(record.made, time.time())} · {history_wording.summary_text(record)}",
            reason=tr("This run is already shown.") if record.id == shown else busy,
        )


SOURCE = PaletteSource(70, entries)
