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
from app.views.shared.table_export import token_table
from app.views.tokens.announcing import announce_current_token
from app.views.tokens.area import TokenArea
from app.views.tokens.look_choice import ColouringController
from app.views.tokens.pointer import TokenMouseHandler
from app.views.tokens.token_keys import TokenKeyHandler, selected_token_menu_position
from app.views.tokens.token_surroundings import TokenViewLayout
from app.views.tokens.tools import TokenTools
from app.widgets.focus_ring import FocusRing
from app.widgets.legend import ColourLegend
from resources.language import tr

if TYPE_CHECKING:
    from app.state.layer_queries import InfluenceMap
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
        self.mouse_handler, self.key_handler = (
            TokenMouseHandler(self.area, theme, self.signals),
            TokenKeyHandler(self.area, self.signals),
        )
        legend = ColourLegend(theme, self)
        self._tools = TokenTools(self)
        self._tools.hide()
        self.colouring_controller = ColouringController(self.area, self._tools, legend)
        self.layout_parts = TokenViewLayout(self, self.area, legend, self.colouring_controller)
        for part in (self, self.area):
            part.setAccessibleName(tr("Generated text"))
        self.setFocusProxy(self.area)
        self.area.focusReceived.connect(lambda: announce_current_token(self, self.area))
        self.area.tokenPicked.connect(self.signals.tokenActivated)
        self.set_theme(theme)
        self.set_colouring("probability")

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def export_table(self) -> Table:
        """Every token of the shown text."""
        run = self.area.run
        return token_table(run.tokens, len(run.beginning)) if run is not None and run.tokens else ()

    def excerpt(self) -> Excerpt | None:
        """What was written up to the cursor."""
        from app.views.tokens.excerpt import token_excerpt  # not before something is taken along

        return token_excerpt(self.area)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for part in (self.area, self._ring, self.mouse_handler.popover, self._tools, self.layout_parts):
            part.set_theme(theme)
        self.area.arrange()

    def model_ready(self, _info: ModelInfo) -> None:
        """The run no longer waits for its model."""
        self.area.viewport().update()

    def influence_changed(self, influence: InfluenceMap | None) -> None:
        """Draw what the step in question hangs on."""
        self.colouring_controller.show_influence(influence)

    def medium_loaded(self, medium: Medium) -> None:
        """Draw what the run has read."""
        self.layout_parts.show_medium(medium)

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`: probability, rank, entropy, bands, origin, or not at all (`none`)."""
        self.colouring_controller.set_colouring(name)

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self.area.show_run(run)
        self.layout_parts.show_scores(run)
        self.colouring_controller.apply_for_run(run)
        self.area.arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add what was written; scroll along only where the reader is at the end already."""
        self.area.show_new_tokens(run)
        if run.is_scored:
            self.layout_parts.show_scores(run)
            self.set_colouring(self.area.paint_options.colouring)
            self.layout_parts.arrange()

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor, and keep that place in sight; another sequence is shown where it stands."""
        self.area.follow_cursor(run)

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token, and keep it in sight."""
        self.area.reveal_selected(run)
        announce_current_token(self, self.area)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What stands above the text leaves it most of the room."""
        super().resizeEvent(event)
        self.layout_parts.set_view_height(self.height())

    def token_rect(self, token: int) -> QRect:
        """Where token `token` of the shown sequence is drawn first, in the area's viewport; empty when it is not."""
        return self.area.token_rect(token)

    def set_presenting(self, on: bool) -> None:
        """The key to the colours is for who sits close by."""
        self.layout_parts.set_presenting(on)
        self.area.arrange()

    def spotlight_rect(self) -> QRect:
        """Around the selected token, else the one before the cursor."""
        run = self.area.run
        if run is None or not run.cursor:
            return QRect()
        token = run.selected if run.selected is not None else min(run.cursor, len(run.tokens)) - 1
        rect = self.token_rect(token)
        return rect.translated(self.area.viewport().mapTo(self, QPoint())) if not rect.isEmpty() else QRect()

    # Keyboard and menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk from token to token, with Shift select text; copy; open the inspector."""
        if not self.key_handler.handle_key(event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to go on with something else in the token's place, and to copy."""
        token = self.mouse_handler.token_at_global(event.globalPos())
        self.mouse_handler.leave()
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.selected_node_menu().popup(selected_token_menu_position(self.area))
        else:
            self.key_handler.create_menu(self, token, self.grammar).popup(event.globalPos())

    def selected_node_menu(self) -> QMenu:
        """That of the selected token."""
        selected = self.area.run.selected if self.area.run is not None else None
        return self.key_handler.create_menu(self, selected, self.grammar)
