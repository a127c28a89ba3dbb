"""Tour chooser: a card with title and description for each tour."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from decodescope.app.features.tours.panel.card_dialog import CardDialog, DialogCard
from decodescope.app.features.tours.state import Tour, TourError
from decodescope.app.widgets.building import set_up
from decodescope.resources.language import tr

_HEIGHT = 640


class TourChooser(CardDialog):
    """Tour chooser. Emits `chosen(name)` and closes."""

    def __init__(self, tours: Sequence[Tour], problems: Sequence[TourError], parent: QWidget | None = None) -> None:
        cards = {}
        for number, tour in enumerate(tours, 1):
            card = DialogCard(f"{number}  {tr(tour.title)}", tr(tour.about))
            cards[tour.name] = set_up(card, name=f"tour.{tour.name}", accessible_name=tr(tour.title))
        intro = tr("Each tour plays in this window with a real model and takes about a minute.")
        super().__init__("tourChooser", tr("Guided tours"), intro, cards, problems, _HEIGHT, parent)
