"""The speculation view: rounds to step through, the tree of one of them, and whether the draft was worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QToolButton, QVBoxLayout, QWidget

from app.state.requests import RunRequest, plain_request
from app.state.rounds import Rounds
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.reports import NodeReport
from app.views.shared.empty_page import paint_empty_page
from app.views.shared.tables import of_rounds
from app.views.speculation.cards import SpecCards
from app.views.speculation.legend import SpecLegend
from app.views.speculation.report import EXTRA, describe, drafter_names, report_on, tree_of
from app.views.speculation.strip import RoundStrip
from app.views.text.wording import token_text
from app.widgets.tree_canvas import TreeCanvas
from core.events import Event

READABLE = 0.72
"""Zoom below which a tree is not shrunk to be seen whole."""
_NO_ROUNDS = Rounds()
_TITLE = "Small guesses, checked all at once"
_HINT = (
    "Choose assisted decoding, prompt lookup, early exit or a token tree and press Ctrl+Enter: every round of guesses "
    "appears here, with what the model kept of it."
)


class SpecTools(QWidget):
    """Which round, and one back or on; for the right end of the tab bar."""

    stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = QLabel("", self)
        self.label.setProperty("role", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.label)
        for text, name, slot in (("‹", "Previous round", self._back), ("›", "Next round", self._on)):
            button = QToolButton(self)
            button.setText(text)
            button.setAccessibleName(name)
            button.setToolTip(name)
            button.clicked.connect(slot)
            row.addWidget(button)

    @Slot()
    def _back(self) -> None:
        self.stepped.emit(-1)

    @Slot()
    def _on(self) -> None:
        self.stepped.emit(1)

    def set_theme(self, theme: Theme) -> None:
        """Other sizes."""
        for button in self.findChildren(QToolButton):
            button.setFont(theme.font(12))


class SpeculationView(View):
    """Strip, tree, words and cards of a run that drafts. A drafted node goes to the inspector; what is measured is
    the same run without a draft and with it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("speculationView", parent)
        self._theme = theme_for("light")
        self._run: Run | None = None
        self._chosen = -1
        self._follow = True
        self._tree_of: tuple[int, int] | None = None
        self.strip, self.canvas, self.cards = RoundStrip(self), TreeCanvas(self), SpecCards(self)
        self._words, self._legend, self._tools = QLabel("", self), SpecLegend(self), SpecTools(self)
        self._tools.hide()
        self._lay_out()
        self.strip.roundPicked.connect(self._pick)
        self._tools.stepped.connect(self._step)
        self.canvas.selection.nodeSelected.connect(self._on_node)
        self.canvas.selection.nothingSelected.connect(self._on_nothing)
        self.cards.measureWanted.connect(self._measure)
        self.cards.roundPicked.connect(self._pick)
        self.set_theme(self._theme)

    def _lay_out(self) -> None:
        self.setAccessibleName("Speculation")
        self.canvas.stage.set_narrow(True)
        self.canvas.setAccessibleName("Tree of the round")
        self._words.setWordWrap(True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._page = QScrollArea(self, widgetResizable=True)
        self._page.setFrameShape(QFrame.Shape.NoFrame)
        self._page.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget()
        page = QVBoxLayout(inner)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        for part in (self.canvas, self._legend, self._words, self.cards):
            page.addWidget(part, int(part is self.canvas))
        self._page.setWidget(inner)
        column.addWidget(self.strip)
        column.addWidget(self._page, 1)
        self.setFocusProxy(self.strip)

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def figures(self) -> Table:
        """Every round up to the cursor."""
        return of_rounds(self._rounds.rounds[: self._shown()]) if self._shown() else ()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for part in (self.strip, self.canvas, self.cards, self._legend, self._tools):
            part.set_theme(theme)
        self.canvas.setMinimumHeight(theme.px(190))
        self._words.setFont(theme.font(13))
        self._words.setContentsMargins(theme.px(20), theme.px(6), theme.px(20), theme.px(6))
        self.update()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning."""
        self._run, self._chosen, self._follow = run, -1, True
        self._tree_of = None
        self.canvas.stage.clear()
        self.cards.clear()
        self._catch_up()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """New rounds."""
        self._run = run
        self._catch_up()

    def cursor_moved(self, run: Run) -> None:
        """Show the rounds up to the cursor."""
        self._run = run
        self._follow = True
        self._catch_up()

    def selection_changed(self, run: Run) -> None:
        """Show the round that wrote the selected token."""
        self._run = run
        number = self._rounds.round_of(run.selected) if run.selected is not None else None
        if number is not None and number != self._chosen:
            self._follow = False
            self._chosen = number
            self._draw()

    @Slot(object)
    def measured(self, run: Run) -> None:
        """Take the figures of the same run without a draft, and with it."""
        if self._run is None:
            return
        plain, drafted = self._both(self._run.request)
        if _alike(run.request, plain):
            self.cards.show_plain(run.finished)
        elif _alike(run.request, drafted):
            self.cards.show_drafted(run.finished)

    @Slot(bool)
    def measuring_changed(self, on: bool) -> None:
        """A comparison begins or has ended."""
        self.cards.set_measuring(on)

    def _catch_up(self) -> None:
        if self._follow:
            self._chosen = self._shown() - 1
        self._draw()

    @property
    def _rounds(self) -> Rounds:
        return self._run.rounds if self._run is not None else _NO_ROUNDS

    def _shown(self) -> int:
        return self._rounds.shown(self._run.cursor) if self._run is not None else 0

    def _draw(self) -> None:
        shown = self._shown()
        self._chosen = min(self._chosen, shown - 1)
        for part in (self.strip, self._page):
            part.setVisible(shown > 0)
        self._tools.label.setText(f"Round {self._chosen + 1} of {shown}" if shown else "")
        self.strip.set_rounds(self._rounds.rounds, shown, self._chosen)
        names = self._names()
        if shown and self._run is not None:
            self._legend.show_drafters(names, self._rounds.by_drafter(len(names)))
            self._draw_tree()
            self._words.setText(describe(self._rounds.rounds[self._chosen]))
            self.cards.show_rounds(self._rounds, shown, self._chosen, self._run.finished)
        self.update()

    def _draw_tree(self) -> None:
        if self._tree_of == (id(self._run), self._chosen):
            return
        self._tree_of = id(self._run), self._chosen
        entry = self._rounds.rounds[self._chosen]
        self.canvas.stage.set_tree(tree_of(entry, self._word_before(entry.step), len(self._names())))
        self.canvas.travel.set_follow(False)
        end = [EXTRA] if entry.extra_kind != "none" else []  # what the round is about is never out of sight
        self.canvas.travel.show_path((0, *entry.accepted, *end), READABLE)

    def _names(self) -> tuple[str, ...]:
        return drafter_names(self._run.request) if self._run is not None else ()

    def _word_before(self, step: int) -> str:
        run = self._run
        if run is None:
            return "…"
        if step and step <= len(run.tokens):
            return f"…{token_text(run.tokens[step - 1].piece)}"
        return f"…{token_text(run.prompt[-1].text)}" if run.prompt else "start"

    @Slot(int)
    def _pick(self, number: int) -> None:
        self._follow = number == self._shown() - 1
        self._chosen = number
        self._draw()

    @Slot(int)
    def _step(self, by: int) -> None:
        if self._shown():
            self._pick(max(0, min(self._chosen + by, self._shown() - 1)))

    @Slot(int)
    def _on_node(self, node: int) -> None:
        known = node != 0 and 0 <= self._chosen < len(self._rounds)
        self._report(report_on(self._rounds.rounds[self._chosen], node, self._names()) if known else None)

    @Slot()
    def _on_nothing(self) -> None:
        self._report(None)

    def _report(self, report: NodeReport | None) -> None:
        self.report = report
        self.signals.reportSelected.emit(report)

    @Slot()
    def _measure(self) -> None:
        if self._run is not None:
            self.signals.measureWanted.emit(self._both(self._run.request))

    @staticmethod
    def _both(request: RunRequest) -> list[RunRequest]:
        return [plain_request(request), request]

    def sizeHint(self) -> QSize:
        """Room for everything."""
        return QSize(self._theme.px(640), self._theme.px(520))

    def paintEvent(self, event: QPaintEvent) -> None:
        """What this page is for, as long as it is empty."""
        if self._shown() == 0:
            painter = QPainter(self)
            paint_empty_page(painter, self.rect(), self._theme, _TITLE, _HINT)
            painter.end()


def _alike(one: RunRequest, other: RunRequest) -> bool:
    """Whether two requests ask for the same; a measurement begins from nothing and stays with its cache."""
    return replace(one, prefix_budget=0, memory_fallback=False) == replace(
        other, prefix_budget=0, memory_fallback=False
    )
