"""Tours, which are begun, and the field's terms, at which the glossary is opened."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from resources.language import tr

TOUR_BEHIND = 120.0
"""As for the examples: a command that a typed word is a synonym of comes first."""
BEHIND = 250.0
"""Who types the name of a command or setting wants that, rather than the glossary's entry on the word."""


def entries(reach: PaletteContext) -> Iterator[PaletteEntry]:
    """Every tour, then every term."""
    from app.state.tours.tour_file import load
    from core import glossary

    busy = tr("A run is under way.") if reach.session.busy else ""
    for tour in load()[0]:
        yield PaletteEntry(
            f"tour.{tour.name}", tr(tour.title), tr("Tour"), partial(reach.start_tour, tour.name),
            also=(tour.title, f"tour {tour.name}"), behind=TOUR_BEHIND, reason=busy,
        )  # fmt: skip
    for term in glossary.terms().values():
        yield PaletteEntry(
            f"term.{term.id}", term.title, tr("Term"), partial(reach.open_term, term.id), (term.term, *term.also),
            about=term.sentence, behind=BEHIND,
        )  # fmt: skip


SOURCE = PaletteSource(110, entries)
