"""The token view: the text as it is written, every token with how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, Slot
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from app.state.filling import AS_SET
from app.state.inside import Influence
from app.state.requests import ModelInfo
from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt, Table, View
from app.views.shared.empty_page import offer_on
from app.views.shared.tables import of_tokens
from app.views.tokens.announcing import announce
from app.views.tokens.area import TokenArea
from app.views.tokens.excerpt import excerpt_of
from app.views.tokens.headings import EMPTY, SequenceChips, is_waiting
from app.views.tokens.keys import Keys, below_picked
from app.views.tokens.look_choice import LookChoice
from app.views.tokens.pointer import Pointer
from app.views.tokens.score_strip import ScoreStrip
from app.views.tokens.tools import TokenTools
from app.widgets.focus_ring import FocusRing
from app.widgets.legend import Legend
from resources.language import tr

if TYPE_CHECKING:
    from core.events import Event


class TokenView(View):
    """Text of the shown sequence, or all sequences side by side where they fit; the key to its colours below."""

    chooses_sequence = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("tokenView", parent)
        theme = theme_for("light")
        self._is_presenting = False
        self._chips, self._score = SequenceChips(self), ScoreStrip(self)
        self.area = TokenArea(theme, self)
        self._ring = FocusRing(self.area)
        self.pointer, self.keys = Pointer(self.area, theme, self.signals), Keys(self.area, self.signals)
        self._legend = Legend(theme, self)
        self._tools = TokenTools(self)
        self._tools.hide()
        self.look_choice = LookChoice(self.area, self._tools, self._legend)
        self.offer = offer_on(self, self.area, tr("Run this prompt"), AS_SET, lambda: ("", tr(EMPTY)), down=12)
        self._lay_out()
        self._chips.chosen.connect(self.signals.sequenceActivated)
        self._score.chosen.connect(self.signals.tokenActivated)
        self.area.arranged.connect(self._on_arranged)
        self.area.focused.connect(lambda: announce(self, self.area))
        self.area.tokenPicked.connect(self.signals.tokenActivated)
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

    def influence_changed(self, influence: Influence | None) -> None:
        """Draw what the step in question hangs on."""
        self.look_choice.show_influence(influence)

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`: probability, rank, entropy, bands, origin, or not at all (`none`)."""
        self.look_choice.set_colouring(name)

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self.area.show_run(run)
        self._score.show_run(run)
        self.look_choice.begin(run)
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
        announce(self, self.area)

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
        self.offer.offer(not self.area.page.has_text and not waits, about=tr(EMPTY))
        self._legend.setVisible(self.area.page.has_text and not self._is_presenting)
        self._legend.set_hint(self.look_choice.hint())
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
            self.menu_of_picked().popup(below_picked(self.area))
        else:
            self.keys.menu(self, token).popup(event.globalPos())

    def menu_of_picked(self) -> QMenu:
        """That of the selected token."""
        return self.keys.menu(self, self.area.run.selected if self.area.run is not None else None)
