"""The token view: the text as it is written, with the model's certainty about every token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, QRect, Slot
from PySide6.QtGui import QAccessible, QAccessibleTextCursorEvent, QContextMenuEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from decodescope.app.state.empty_view import AS_SET
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.views.base import Excerpt, Table, View
from decodescope.app.views.shared.empty_page import add_fill_button
from decodescope.app.views.shared.table_export import token_table
from decodescope.app.views.text.token_wording import describe_token
from decodescope.app.views.tokens.area import TokenArea
from decodescope.app.views.tokens.colouring import ColouringController, TokenTools
from decodescope.app.views.tokens.token_headings import EMPTY_HINT, SequenceChips, empty_title_and_hint, is_waiting
from decodescope.app.views.tokens.token_input import TokenKeyHandler, TokenMouseHandler, selected_token_menu_position
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.legend import ColourLegend
from decodescope.app.widgets.overlays import FocusRing
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.state.layer_queries import InfluenceMap
    from decodescope.app.state.media import Medium
    from decodescope.app.views.tokens.token_strips import MediaStrip, ScoreStrip
    from decodescope.core.events import Event


def announce_current_token(view: View, area: TokenArea) -> None:
    """Announce the selected token, or the newest one. Does nothing before the first token."""
    run, column = area.run, area.page.shown_column()
    if run is None or not run.tokens:
        return
    index = run.selected if run.selected is not None else max(0, run.cursor - 1)
    description = describe_token(run.tokens[index], run.number_of(index), run.number_of(len(run.tokens) - 1))
    for part in (view, area):
        part.setAccessibleDescription(description)
    if QAccessible.isActive() and column is not None:
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(area, column.text.token_span(index)[0]))


class TokenViewLayout(QObject):
    """Shows and hides the parts around the area, and leaves the area most of the room."""

    def __init__(self, view: View, area: TokenArea, legend: ColourLegend, look_choice: ColouringController) -> None:
        super().__init__(view)
        self.chips = SequenceChips(view)
        self._score_strip: ScoreStrip | None = None
        self._media_strip: MediaStrip | None = None
        self.offer = add_fill_button(view, area, tr("Run this prompt"), AS_SET, lambda: empty_title_and_hint(area.run))
        self._view, self._area, self._legend, self._look_choice = view, area, legend, look_choice
        self._is_presenting = False
        self._column = arrange(QVBoxLayout(view), self.chips, area, legend, spacing=0, margins=0)
        self._column.setStretchFactor(area, 1)
        self.chips.sequenceChosen.connect(view.signals.sequenceActivated)
        area.arranged.connect(self.arrange)

    def restyle(self, theme: Theme) -> None:
        """Set the margins that depend on the theme."""
        side = theme.px(26)
        self.chips.setContentsMargins(side, theme.px(10), side, theme.px(2))
        self._legend.setFixedHeight(theme.px(36))
        self._legend.setContentsMargins(side, 0, side, 0)

    def set_presenting(self, on: bool) -> None:
        """Hide the colour legend while presenting: it is too small to read from a distance."""
        self._is_presenting = on

    @property
    def _strips(self) -> tuple[MediaStrip | ScoreStrip, ...]:
        """The strips above the text that exist; most runs have none."""
        return tuple(strip for strip in (self._media_strip, self._score_strip) if strip is not None)

    def show_scores(self, run: Run | None) -> None:
        """Show the strip of a scored run."""
        if self._score_strip is None and run is not None and run.is_scored:
            from decodescope.app.views.tokens.token_strips import ScoreStrip

            self._score_strip = ScoreStrip(self._view)
            self._score_strip.tokenChosen.connect(self._view.signals.tokenActivated)
            self._add_strip(self._score_strip, below=self._media_strip)
        if self._score_strip is not None:
            self._score_strip.show_run(run)

    def _show_media(self, run: Run | None) -> None:
        """Show the strip of the media that the run read."""
        if self._media_strip is None and run is not None and run.started is not None and run.started.media:
            from decodescope.app.views.tokens.token_strips import MediaStrip

            self._media_strip = MediaStrip(self._view)
            self._media_strip.mediumRequested.connect(self._view.signals.mediumRequested)
            self._add_strip(self._media_strip)
        if self._media_strip is not None:
            self._media_strip.show_run(run)

    def _add_strip(self, strip: MediaStrip | ScoreStrip, below: QWidget | None = None) -> None:
        self._column.insertWidget(0 if below is None else 1, strip)
        strip.set_theme(self._view.current_theme)
        strip.set_view_height(self._view.height())

    def show_medium(self, medium: Medium) -> None:
        """Show the preview of a loaded media file."""
        if self._media_strip is not None:
            self._media_strip.show_medium(medium)

    def set_view_height(self, height: int) -> None:
        """Set the view's height, of which the strips leave most to the text."""
        for strip in self._strips:
            strip.set_view_height(height)

    @Slot()
    def arrange(self) -> None:
        """Show the parts that apply to the run."""
        run, page = self._area.run, self._area.page
        before = self.chips.isHidden(), self._legend.isHidden()
        self._show_media(run)
        self.chips.show_run(run, hidden=page.is_side_by_side)
        waits = is_waiting(run)
        self.offer.update_state(not (page.has_text or waits or self._is_presenting), description=tr(EMPTY_HINT))
        has_key = page.has_text or (
            waits and not self._legend.isHidden()
        )  # keep the layout unchanged when a run starts
        self._legend.setVisible(has_key and not self._is_presenting)
        self._legend.set_hint(self._look_choice.legend_hint())
        if before != (self.chips.isHidden(), self._legend.isHidden()):
            self._column.activate()  # at once, so that the page is never painted at its old size


class TokenView(View):
    """Text of the shown sequence, or all sequences side by side if they fit, with the colour legend below."""

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

    # Called by the window

    def header_widget(self) -> QWidget:
        """Return the widget at the right end of the tab bar."""
        return self._tools

    def export_table(self) -> Table:
        """Return a table of all tokens of the shown text."""
        run = self.area.run
        return token_table(run.tokens, len(run.beginning)) if run is not None and run.tokens else ()

    def excerpt(self) -> Excerpt | None:
        """Return the text up to the cursor."""
        from decodescope.app.views.tokens.excerpt import token_excerpt  # import only when something is exported

        return token_excerpt(self.area)

    def restyle(self, theme: Theme) -> None:
        self.layout_parts.restyle(theme)
        self.area.arrange()

    def model_ready(self, _info: ModelInfo) -> None:
        """Repaint: the run no longer waits for its model."""
        self.area.viewport().update()

    def influence_changed(self, influence: InfluenceMap | None) -> None:
        """Draw the influence on the inspected step."""
        self.colouring_controller.show_influence(influence)

    def medium_loaded(self, medium: Medium) -> None:
        """Show the preview of a loaded media file."""
        self.layout_parts.show_medium(medium)

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`: probability, rank, entropy, band, origin and others, or `none`."""
        self.colouring_controller.set_colouring(name)

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None shows the empty page."""
        self.area.show_run(run)
        self.layout_parts.show_scores(run)
        self.colouring_controller.apply_for_run(run)
        self.area.arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add new tokens. Scroll only if the reader is already at the end."""
        self.area.show_new_tokens(run)
        if run.is_scored:
            self.layout_parts.show_scores(run)
            self.set_colouring(self.area.paint_options.colouring)
            self.layout_parts.arrange()

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor and keep it visible. Another sequence is shown without scrolling."""
        self.area.follow_cursor(run)

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token and keep it visible."""
        self.area.reveal_selected(run)
        announce_current_token(self, self.area)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Pass the new height to the parts around the text."""
        super().resizeEvent(event)
        self.layout_parts.set_view_height(self.height())

    def token_rect(self, token: int) -> QRect:
        """Return the first rectangle of a token of the shown sequence, in the area's viewport; empty if it is not
        drawn.
        """
        return self.area.token_rect(token)

    def set_presenting(self, on: bool) -> None:
        """Hide the colour legend while presenting."""
        self.layout_parts.set_presenting(on)
        self.area.arrange()

    def spotlight_rect(self) -> QRect:
        """Return the rectangle of the selected token, or of the last one before the cursor."""
        run = self.area.run
        if run is None or not run.cursor:
            return QRect()
        token = run.selected if run.selected is not None else min(run.cursor, len(run.tokens)) - 1
        rect = self.token_rect(token)
        return rect.translated(self.area.viewport().mapTo(self, QPoint())) if not rect.isEmpty() else QRect()

    # Keyboard and menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Navigate between tokens, select text with Shift, copy, or open the inspector."""
        if not self.key_handler.handle_key(event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the menu with the alternatives of the token and with copying."""
        token = self.mouse_handler.token_at_global(event.globalPos())
        self.mouse_handler.leave()
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self.selected_node_menu().popup(selected_token_menu_position(self.area))
        else:
            self.key_handler.create_menu(self, token, self.grammar).popup(event.globalPos())

    def selected_node_menu(self) -> QMenu:
        """Return the context menu of the selected token."""
        selected = self.area.run.selected if self.area.run is not None else None
        return self.key_handler.create_menu(self, selected, self.grammar)
