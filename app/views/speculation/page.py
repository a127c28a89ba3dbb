"""One round on a page that scrolls: its tree with the key to it, the round in words, the cards."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.views.speculation.cards import SpeculationCards
from app.views.speculation.legend import SpeculationLegend
from app.views.speculation.round_report import EXTRA_NODE, describe_round, round_tree
from app.views.speculation.round_selection import RoundSelection
from app.widgets.plain_text import PlainLabel
from app.widgets.tree_canvas import TreeCanvas
from core.events import DraftRound
from resources.language import tr

MIN_READABLE_ZOOM = 0.72
"""Zoom below which a tree is not shrunk to be seen whole."""


MIN_TREE_HEIGHT = 190
"""Pixels of the tree's height at 100 %."""


class RoundPage(QScrollArea):
    """Draws the round of a `RoundSelection`."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.canvas, self.legend, self.cards = TreeCanvas(self), SpeculationLegend(self), SpeculationCards(self)
        self._description = PlainLabel("", self)
        self._drawn: tuple[int, int] | None = None
        """Run and number of the round whose tree is on the canvas."""
        self._min_tree_height, self._theme = MIN_TREE_HEIGHT, theme_for("light")
        self.canvas.canvas_state.set_narrow(True)
        self.canvas.setAccessibleName(tr("Tree of the round"))
        self._description.setWordWrap(True)
        self._description.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName(tr("The round"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.canvas, self.legend, self._description, self.cards):
            column.addWidget(part, int(part is self.canvas))
        self.setWidget(inner)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.canvas, self.legend, self.cards):
            part.set_theme(theme)
        self._theme = theme
        self.canvas.setMinimumHeight(theme.px(self._min_tree_height))
        self._description.setFont(theme.font(13))
        self._description.setContentsMargins(theme.px(20), theme.px(6), theme.px(20), theme.px(6))

    def set_presenting(self, on: bool) -> None:
        """On a stage the tree stands alone, as high as there is room."""
        for part in (self.legend, self._description, self.cards):
            part.setVisible(not on)
        self._min_tree_height = 0 if on else MIN_TREE_HEIGHT
        self.canvas.setMinimumHeight(self._theme.px(self._min_tree_height))
        self.canvas.set_presenting(on)

    def clear(self) -> None:
        """Another run: nothing of it is known."""
        self._drawn = None
        self.canvas.canvas_state.clear()
        self.cards.clear()

    def show_round(self, selection: RoundSelection) -> None:
        """Show the round that is picked."""
        entry, names = selection.entry, selection.drafters
        if entry is None or selection.run is None:
            return
        self.legend.show_drafters(names, selection.rounds.counts_by_drafter(len(names)))
        if self._drawn != (id(selection.run), selection.number):
            self._drawn = id(selection.run), selection.number
            self._draw_tree(entry, selection.word_before, len(names))
        self._description.setText(describe_round(entry, names))
        self.cards.show_rounds(selection.rounds, selection.count, selection.number, selection.run.finished)

    def _draw_tree(self, entry: DraftRound, before: str, drafters: int) -> None:
        self.canvas.canvas_state.set_tree(round_tree(entry, before, drafters))
        self.canvas.navigation.set_follow(False)
        end = [EXTRA_NODE] if entry.extra_kind != "none" else []  # what the round is about is never out of sight
        self.canvas.navigation.show_path((0, *entry.accepted, *end), MIN_READABLE_ZOOM)
