"""The speculation view: rounds to step through, the tree of one of them, and whether the draft was worth it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.empty_view import DRAFT, why_not
from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.node_reports import NodeReport
from app.views.shared.empty_page import offer_on, paint_empty_page
from app.views.shared.table_export import of_rounds
from app.views.speculation.draft_comparison import DraftComparison
from app.views.speculation.page import RoundPage
from app.views.speculation.picked_node import PickedNode
from app.views.speculation.round_report import describe
from app.views.speculation.round_selection import RoundPlace
from app.views.speculation.round_strip import RoundStrip
from app.views.speculation.tools import SpecTools
from core.events import Event
from resources.language import mark, tr

_TITLE = mark("Small guesses, checked all at once")
_HINT = mark(
    "Choose assisted decoding, prompt lookup, early exit or a token tree and press Ctrl+Enter: every round of guesses "
    "appears here, with what the model kept of it."
)


class SpeculationView(View):
    """Strip, tree, words and cards of a run that drafts. A drafted node goes to the inspector; what is measured is
    the same run without a draft and with it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speculationView", parent)
        self._theme = theme_for("light")
        self.place = RoundPlace()
        self.strip, self.page, self._tools = RoundStrip(self), RoundPage(self), SpecTools(self)
        self.canvas, self.cards = self.page.canvas, self.page.cards
        self._picked, self._worth = (
            PickedNode(self.canvas, self.place),
            DraftComparison(self.cards, self.place, self.signals),
        )
        self._tools.hide()
        self._info: ModelInfo | None = None
        self.offer = offer_on(self, self, tr("Choose a draft and run"), DRAFT, lambda: (tr(_TITLE), tr(_HINT)))
        self.setAccessibleName(tr("Speculation"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.strip)
        column.addWidget(self.page, 1)
        self.setFocusProxy(self.strip)
        self.strip.roundPicked.connect(self.show_round)
        self.cards.roundPicked.connect(self.show_round)
        self._tools.stepped.connect(lambda by: self.show_round(self.place.beside(by)))
        self._picked.reported.connect(self._report)
        self.set_theme(self._theme)

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def figures(self) -> Table:
        """Every round up to the cursor."""
        return of_rounds(self.place.rounds.rounds[: self.place.count]) if self.place.count else ()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for part in (self.strip, self.page, self._tools, self.offer):
            part.set_theme(theme)
        self.update()

    def words_changed(self) -> None:
        """Say it all again."""
        self._draw()
        if self.report is not None:
            self._picked.say_again()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning."""
        self.place.begin(run)
        self.page.clear()
        if run is not None:
            self.place.catch_up(run)
        self._draw()

    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded: it may refuse to check drafts."""
        self._info = info
        self._draw()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """New rounds."""
        self.place.catch_up(run)
        self._draw()

    def cursor_moved(self, run: Run) -> None:
        """Show the rounds up to the cursor."""
        self.place.catch_up(run, anew=True)
        self._draw()

    def selection_changed(self, run: Run) -> None:
        """Show the round that wrote the selected token."""
        self.place.run = run
        if self.place.show_token(run.selected):
            self._draw()

    @Slot(object)
    def measured(self, run: Run) -> None:
        """Take the figures of the same run without a draft, and with it."""
        self._worth.take(run)

    @Slot(bool)
    def measuring_changed(self, on: bool) -> None:
        """A comparison begins or has ended."""
        self.cards.set_measuring(on)

    def set_presenting(self, on: bool) -> None:
        """The strip and the tree; the words stand beside the view."""
        self.page.set_presenting(on)

    def spotlight(self) -> QRect:
        """Around the tree of the round."""
        canvas = self.canvas
        if not self.place.count:
            return QRect()
        around = canvas.stage.camera.rect_from_canvas(canvas.stage.scene.bounds()).toAlignedRect()
        grown = around.marginsAdded(QMargins(12, 12, 12, 12)).intersected(canvas.rect())
        return grown.translated(canvas.mapTo(self, QPoint()))

    def caption(self) -> str:
        """What became of the round."""
        return describe(self.place.entry) if self.place.entry is not None else ""

    def _draw(self) -> None:
        place = self.place
        for part in (self.strip, self.page):
            part.setVisible(place.count > 0)
        waits = place.run is not None and place.run.outcome is None
        self.offer.offer(not place.count and not waits, why_not(DRAFT, self._info), tr(_HINT))
        self._tools.label.setText(
            tr("Round {number} of {count}").format(number=place.number + 1, count=place.count) if place.count else ""
        )
        self.strip.set_rounds(place.rounds.rounds, place.count, place.number)
        self.page.draw(place)
        self.update()

    @Slot(int)
    def show_round(self, number: int) -> None:
        """Show that round, counted from 0."""
        self.place.pick(number)
        self._draw()

    @Slot(object)
    def _report(self, report: NodeReport | None) -> None:
        self.report = report
        self.signals.reportSelected.emit(report)

    def sizeHint(self) -> QSize:
        """Room for everything."""
        return QSize(self._theme.px(640), self._theme.px(520))

    def paintEvent(self, event: QPaintEvent) -> None:
        """What this page is for, as long as it is empty."""
        if not self.place.count:
            painter = QPainter(self)
            paint_empty_page(painter, self.rect(), self._theme, (tr(_TITLE), tr(_HINT)))
            painter.end()
