"""One round on a page that scrolls: its tree with the key to it, the round in words, the cards."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.views.speculation.cards import SpecCards
from app.views.speculation.legend import SpecLegend
from app.views.speculation.round_report import EXTRA, describe, tree_of
from app.views.speculation.round_selection import RoundPlace
from app.widgets.plain_text import PlainLabel
from app.widgets.tree_canvas import TreeCanvas
from core.events import DraftRound
from resources.language import tr

READABLE = 0.72
"""Zoom below which a tree is not shrunk to be seen whole."""


LEAST = 190
"""Pixels of the tree's height at 100 %."""


class RoundPage(QScrollArea):
    """Draws the round of a `RoundPlace`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.canvas, self.legend, self.cards = TreeCanvas(self), SpecLegend(self), SpecCards(self)
        self._words = PlainLabel("", self)
        self._drawn: tuple[int, int] | None = None
        """Run and number of the round whose tree is on the canvas."""
        self._least, self._theme = LEAST, theme_for("light")
        self.canvas.stage.set_narrow(True)
        self.canvas.setAccessibleName(tr("Tree of the round"))
        self._words.setWordWrap(True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName(tr("The round"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.canvas, self.legend, self._words, self.cards):
            column.addWidget(part, int(part is self.canvas))
        self.setWidget(inner)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.canvas, self.legend, self.cards):
            part.set_theme(theme)
        self._theme = theme
        self.canvas.setMinimumHeight(theme.px(self._least))
        self._words.setFont(theme.font(13))
        self._words.setContentsMargins(theme.px(20), theme.px(6), theme.px(20), theme.px(6))

    def set_presenting(self, on: bool) -> None:
        """On a stage the tree stands alone, as high as there is room."""
        for part in (self.legend, self._words, self.cards):
            part.setVisible(not on)
        self._least = 0 if on else LEAST
        self.canvas.setMinimumHeight(self._theme.px(self._least))
        self.canvas.set_presenting(on)

    def clear(self) -> None:
        """Another run: nothing of it is known."""
        self._drawn = None
        self.canvas.stage.clear()
        self.cards.clear()

    def draw(self, place: RoundPlace) -> None:
        """Show the round that is picked."""
        entry, names = place.entry, place.drafters
        if entry is None or place.run is None:
            return
        self.legend.show_drafters(names, place.rounds.by_drafter(len(names)))
        if self._drawn != (id(place.run), place.number):
            self._drawn = id(place.run), place.number
            self._draw_tree(entry, place.word_before, len(names))
        self._words.setText(describe(entry, names))
        self.cards.show_rounds(place.rounds, place.count, place.number, place.run.finished)

    def _draw_tree(self, entry: DraftRound, before: str, drafters: int) -> None:
        self.canvas.stage.set_tree(tree_of(entry, before, drafters))
        self.canvas.travel.set_follow(False)
        end = [EXTRA] if entry.extra_kind != "none" else []  # what the round is about is never out of sight
        self.canvas.travel.show_path((0, *entry.accepted, *end), READABLE)
