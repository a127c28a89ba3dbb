"""The token view: the text as it is written, every token with how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.state.run import Run
from app.state.worker_messages import ModelInfo
from app.theme.theme import Theme, theme_for
from app.views.base import Excerpt, Table, View
from app.views.shared.table_export import of_tokens
from app.views.tokens.announcing import announce
from app.views.tokens.area import TokenArea
from app.views.tokens.look_choice import LookChoice
from app.views.tokens.pointer import Pointer
from app.views.tokens.token_keys import Keys, below_picked
from app.views.tokens.token_surroundings import AroundText
from app.views.tokens.tools import TokenTools
from app.widgets.focus_ring import FocusRing
from app.widgets.legend import Legend
from resources.language import tr

if TYPE_CHECKING:
    from app.state.layer_queries import Influence
    from app.state.media import Medium
    from core.events import Event


class TokenView(View):
    """Text of the shown sequence, or all sequences side by side where they fit; the key to its colours below."""

    chooses_sequence = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("tokenView", parent)
        theme = theme_for("light")
        self.area = TokenArea(theme, self)
        self._ring = FocusRing(self.area)
        self.pointer, self.keys = Pointer(self.area, theme, self.signals), Keys(self.area, self.signals)
        legend = Legend(theme, self)
        self._tools = TokenTools(self)
        self._tools.hide()
        self.look_choice = LookChoice(self.area, self._tools, legend)
        self.around = AroundText(self, self.area, legend, self.look_choice)
        for part in (self, self.area):
            part.setAccessibleName(tr("Generated text"))
        self.setFocusProxy(self.area)
        self.area.focused.connect(lambda: announce(self, self.area))
        self.area.tokenPicked.connect(self.signals.tokenActivated)
        self.set_theme(theme)
        self.set_colouring("probability")

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def figures(self) -> Table:
        """Every token of the shown text."""
        run = self.area.run
        return of_tokens(run.tokens, len(run.beginning)) if run is not None and run.tokens else ()

    def excerpt(self) -> Excerpt | None:
        """What was written up to the cursor."""
        from app.views.tokens.excerpt import excerpt_of  # not before something is taken along

        return excerpt_of(self.area)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.area, self._ring, self.pointer.popover, self._tools, self.around):
            part.set_theme(theme)
        self.area.arrange()

    def model_ready(self, _info: ModelInfo) -> None:
        """The run no longer waits for its model."""
        self.area.viewport().update()

    def influence_changed(self, influence: Influence | None) -> None:
        """Draw what the step in question hangs on."""
        self.look_choice.show_influence(influence)

    def medium_known(self, medium: Medium) -> None:
        """Draw what the run has read."""
        self.around.tell(medium)

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`: probability, rank, entropy, bands, origin, or not at all (`none`)."""
        self.look_choice.set_colouring(name)

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self.area.show_run(run)
        self.around.show_scores(run)
        self.look_choice.begin(run)
        self.area.arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add what was written; scroll along only where the reader is at the end already."""
        self.area.grow(run)
        if run.is_scored:
            self.around.show_scores(run)
            self.set_colouring(self.area.look.colouring)
            self.around.arrange()

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
        self.around.fit_into(self.height())

    def token_rect(self, token: int) -> QRect:
        """Where token `token` of the shown sequence is drawn first, in the area's viewport; empty when it is not."""
        return self.area.token_rect(token)

    def set_presenting(self, on: bool) -> None:
        """The key to the colours is for who sits close by."""
        self.around.set_presenting(on)
        self.area.arrange()

    def spotlight(self) -> QRect:
        """Around the selected token, else the one before the cursor."""
        run = self.area.run
        if run is None or not run.cursor:
            return QRect()
        token = run.selected if run.selected is not None else min(run.cursor, len(run.tokens)) - 1
        place = self.token_rect(token)
        return place.translated(self.area.viewport().mapTo(self, QPoint())) if not place.isEmpty() else QRect()

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
            self.keys.menu(self, token, self.grammar).popup(event.globalPos())

    def menu_of_picked(self) -> QMenu:
        """That of the selected token."""
        selected = self.area.run.selected if self.area.run is not None else None
        return self.keys.menu(self, selected, self.grammar)
