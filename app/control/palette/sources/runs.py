"""Runs: the latest that are kept are shown again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from resources.language import tr

MOST = 24
"""So many of the latest; the history itself finds the others."""


def entries(reach: PaletteContext) -> Iterator[PaletteEntry]:
    """What the history keeps, pinned ones first."""
    from app.panels.history import history_wording
    from app.storage.history.history_record import HistoryRecord

    nothing: list[HistoryRecord] = []
    shown = reach.session.run.id if reach.session.run is not None else ""
    busy = tr("A run is under way.") if reach.session.busy else ""
    for record in reach.history.ask(lambda store: store.records(store.ids(most=MOST)), nothing):
        yield PaletteEntry(
            f"run.{record.id}",
            record.name,
            tr("Run"),
            partial(reach.history.show, record.id),
            about=f"{history_wording.moment(record.made, time.time())} · {history_wording.figures(record)}",
            reason=tr("This run is shown now.") if record.id == shown else busy,
        )


SOURCE = PaletteSource(70, entries)
