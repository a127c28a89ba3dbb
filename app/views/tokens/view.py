"""The token view: the text as it is written, every token with how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, Slot
from PySide6.QtGui import QAccessible, QAccessibleTextCursorEvent, QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from app.state.filling import AS_SET
from app.state.requests import ModelInfo
from app.state.run import Run
from app.state.scores import BAND_NAMES, scores_of, shares
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt, Table, View
from app.views.shared.empty_page import offer_on
from app.views.shared.tables import of_tokens
from app.views.text.origins import KEY
from app.views.text.paint import BAND_SCORES, COLOURINGS, thickness
from app.views.text.wording import spoken
from app.views.tokens.area import TokenArea
from app.views.tokens.excerpt import excerpt_of
from app.views.tokens.headings import EMPTY, SequenceChips, is_waiting
from app.views.tokens.keys import Keys
from app.views.tokens.pointer import Pointer
from app.views.tokens.score_strip import ScoreStrip
from app.views.tokens.tools import TokenTools
from app.widgets.focus_ring import FocusRing
from app.widgets.legend import Legend, Step
from core import strategies
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.events import Event

HINT = mark("click a token, or ← →")
CHANGED = mark("▾ the search changed its mind here")
BRANCHED = mark("│ the branch begins here")


def _band_steps(run: Run | None) -> tuple[Step, ...]:
    """GLTR's bands in the key, with their parts of a scored text."""
    parts = [f": {part}" for part in shares(scores_of(run.tokens))] if run is not None and run.is_scored else None
    names = [f"{tr(name)}{part}" for name, part in zip(BAND_NAMES, parts or [""] * len(BAND_NAMES), strict=True)]
    names[0] = tr("rank {band}").format(band=names[0])
    return tuple(Step(name, score, thickness(score)) for name, score in zip(names, BAND_SCORES, strict=True))


def _kind(run: Run | None) -> str:
    """By which the colours are remembered."""
    if run is None:
        return "plain"
    if run.is_scored:
        return "compared" if run.request.second or run.compared else "scored"
    strategy = strategies.registry.get(run.request.strategy)
    return "drafted" if strategy is not None and strategy.speculates else "plain"


class TokenView(View):
    """Text of the shown sequence, or all sequences side by side where they fit; the key to its colours below."""

    chooses_sequence = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("tokenView", parent)
        theme = theme_for("light")
        self._kind = "plain"
        self._is_presenting = False
        self._colourings = {"plain": "probability", "drafted": "origin", "scored": "band", "compared": "difference"}
        """What tokens are coloured by, by the kind of run."""
        self._chips, self._score = SequenceChips(self), ScoreStrip(self)
        self.area = TokenArea(theme, self)
        self._ring = FocusRing(self.area)
        self.pointer, self.keys = Pointer(self.area, theme, self.signals), Keys(self.area, self.signals)
        self._legend = Legend(theme, self)
        self._tools = TokenTools(self)
        self._tools.hide()
        self.offer = offer_on(self, self.area, tr("Run this prompt"), AS_SET, lambda: ("", tr(EMPTY)), down=12)
        self._lay_out()
        self._connect()
        self.set_theme(theme)
        self.set_colouring("probability")

    def _lay_out(self) -> None:
        for part in (self, self.area):
            part.setAccessibleName(tr("Generated text"))
        self._column = QVBoxLayout(self)
        self._column.setSpacing(0)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._score)
        self._column.addWidget(self._chips)
        self._column.addWidget(self.area, 1)
        self._column.addWidget(self._legend)
        self.setFocusProxy(self.area)

    def _connect(self) -> None:
        self._chips.chosen.connect(self.signals.sequenceActivated)
        self._score.chosen.connect(self.signals.tokenActivated)
        self._tools.colouringChosen.connect(self._choose_colouring)
        self._tools.whitespaceToggled.connect(self.set_whitespace)
        self.area.arranged.connect(self._on_arranged)
        self.area.focused.connect(self._announce)
        self.area.tokenPicked.connect(self.signals.tokenActivated)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def figures(self) -> Table:
        """Every token of the shown text."""
        run = self.area.run
        return of_tokens(run.tokens) if run is not None and run.tokens else ()

    def excerpt(self) -> Excerpt | None:
        """What was written up to the cursor."""
        return excerpt_of(self.area)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        parts = (self.area, self._ring, self.pointer.popover, self._legend, self._chips, self._score, self._tools,
                 self.offer)  # fmt: skip
        for part in parts:
            part.set_theme(theme)
        side, foot = theme.px(26), theme.px(36)
        self._chips.setContentsMargins(side, theme.px(10), side, theme.px(2))
        self._legend.setFixedHeight(foot)
        self._legend.setContentsMargins(side, 0, side, 0)
        self.area.arrange()

    def model_ready(self, _info: ModelInfo) -> None:
        """The run no longer waits for its model."""
        self.area.viewport().update()

    @Slot(str)
    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`: probability, rank, entropy, bands, origin, or not at all (`none`)."""
        self.area.look.colouring = name
        self._tools.set_colouring(name)
        _title, low, high = COLOURINGS[name]
        self._legend.set_words(tr(low), tr(high), self._hint(), _band_steps(self.area.run) if name == "band" else ())
        self.area.viewport().update()

    @Slot(str)
    def _choose_colouring(self, name: str) -> None:
        """What the reader picks holds for runs of the same kind."""
        self._colourings[self._kind] = name
        self.set_colouring(name)

    def _hint(self) -> str:
        look = self.area.look
        if look.colouring == "origin":
            return tr(KEY)
        marks = [tr(words) for words, there in ((CHANGED, look.changed), (BRANCHED, look.branch is not None)) if there]
        return "   ".join([*marks, tr(HINT)])

    @Slot(bool)
    def set_whitespace(self, shown: bool) -> None:
        """Show or hide ␣ and ↵."""
        self.area.look.whitespace = shown
        self._tools.whitespace.setChecked(shown)
        self.area.viewport().update()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self.area.show_run(run)
        self._kind = _kind(run)
        self._tools.offer("difference", self._kind == "compared")
        self._score.show_run(run)
        self.set_colouring(self._colourings[self._kind])
        self.area.arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add what was written; scroll along only where the reader is at the end already."""
        self.area.grow(run)
        if run.is_scored:
            self._score.show_run(run)
            self.set_colouring(self.area.look.colouring)
            self._on_arranged()

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor, and keep that place in sight; another sequence is shown where it stands."""
        self.area.follow_cursor(run)

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token, and keep it in sight."""
        self.area.reveal_selected(run)
        self._announce()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What stands above the text leaves it most of the room."""
        super().resizeEvent(event)
        self._score.fit_into(self.height())

    def token_rect(self, token: int) -> QRect:
        """Where token `token` of the shown sequence is drawn first, in the area's viewport; empty when it is not."""
        return self.area.token_rect(token)

    def set_presenting(self, on: bool) -> None:
        """The key to the colours is for who sits close by."""
        self._is_presenting = on
        self.area.arrange()

    def spotlight(self) -> QRect:
        """Around the selected token, else the one before the cursor."""
        run = self.area.run
        if run is None or not run.cursor:
            return QRect()
        token = run.selected if run.selected is not None else min(run.cursor, len(run.tokens)) - 1
        place = self.token_rect(token)
        return place.translated(self.area.viewport().mapTo(self, QPoint())) if not place.isEmpty() else QRect()

    @Slot()
    def _on_arranged(self) -> None:
        """Chips and key come and go with what they speak of."""
        before = self._chips.isHidden(), self._legend.isHidden()
        self._chips.show_run(self.area.run, hidden=self.area.page.side_by_side)
        waits = is_waiting(self.area.run) or self._is_presenting
        self.offer.offer(not self.area.has_text and not waits, about=tr(EMPTY))
        self._legend.setVisible(self.area.has_text and not self._is_presenting)
        self._legend.set_hint(self._hint())
        if before != (self._chips.isHidden(), self._legend.isHidden()):
            self._column.activate()  # at once: the page is never painted over a place that it does not have

    # Keyboard and menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk from token to token, with Shift select text; copy; open the inspector."""
        if not self.keys.take(event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to go on with something else in the token's place, and to copy."""
        token = self.pointer.token_under(event.globalPos())
        self.pointer.leave()
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.menu_of_picked().popup(self._below_picked())
        else:
            self.keys.menu(self, token).popup(event.globalPos())

    def menu_of_picked(self) -> QMenu:
        """That of the selected token."""
        return self.keys.menu(self, self.area.run.selected if self.area.run is not None else None)

    def _below_picked(self) -> QPoint:
        """Where on the screen the menu of the selected token opens; without one, in the page's corner."""
        run, viewport = self.area.run, self.area.viewport()
        rect = self.token_rect(run.selected) if run is not None and run.selected is not None else QRect()
        return viewport.mapToGlobal(rect.bottomLeft() if rect.isValid() else self.area.padding)

    @Slot()
    def _announce(self) -> None:
        """Say where one is."""
        run, column = self.area.run, self.area.page.shown()
        if run is None or not run.tokens:
            return
        place = run.selected if run.selected is not None else max(0, run.cursor - 1)
        words = spoken(run.tokens[place], place + 1, len(run.tokens))
        for part in (self, self.area):
            part.setAccessibleDescription(words)
        if QAccessible.isActive() and column is not None:
            QAccessible.updateAccessibility(QAccessibleTextCursorEvent(self.area, column.text.span(place)[0]))
