"""Tours, and glossary terms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.resources.language import tr

TOUR_PENALTY = 120.0
"""As for examples, a command with a matching synonym comes first."""
TERM_PENALTY = 250.0
"""Penalty: commands and settings come before glossary terms of the same name."""


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every tour, then every term."""
    from decodescope.app.features.tours.state.tour_file import load_tours
    from decodescope.core import glossary

    busy = tr("A run is in progress.") if context.session.busy else ""
    for tour in load_tours()[0]:
        yield PaletteEntry(
            f"tour.{tour.name}", tr(tour.title), tr("Tour"), partial(context.start_tour, tour.name),
            aliases=(tour.title, f"tour {tour.name}"), penalty=TOUR_PENALTY, reason=busy,
        )  # fmt: skip
    for term in glossary.terms().values():
        yield PaletteEntry(
            f"term.{term.id}", term.title, tr("Term"), partial(context.open_term, term.id), (term.term, *term.also),
            about=term.sentence, penalty=TERM_PENALTY,
        )  # fmt: skip


SOURCE = PaletteSource(110, entries)
