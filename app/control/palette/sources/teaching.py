"""Tours, which are begun, and the field's terms, at which the glossary is opened."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from resources.language import tr

TOUR_PENALTY = 120.0
"""As for the examples: a command that a typed word is a synonym of comes first."""
TERM_PENALTY = 250.0
"""Who types the name of a command or setting wants that, rather than the glossary's entry on the word."""


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Every tour, then every term."""
    from app.state.tours.tour_file import load_tours
    from core import glossary

    busy = tr("A run is under way.") if context.session.busy else ""
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
