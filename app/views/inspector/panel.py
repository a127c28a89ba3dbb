"""The inspector: selects the token or tree node to explain, and when to update; `TokenPage` shows the explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QMenu, QVBoxLayout, QWidget

from decodescope.app.state.branching import (
    PathContinuation,
    TokenReplacement,
    branch_unsupported_reason,
    forbidden_ids,
)
from decodescope.app.state.empty_view import AS_SET
from decodescope.app.state.run import Run
from decodescope.app.state.token_stats import uncertain_steps, uncertain_unavailable_reason
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import Table, View
from decodescope.app.views.inspector.inspector_section import page_margins
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.shared.empty_page import FillButton
from decodescope.app.views.shared.table_export import alternative_table
from decodescope.app.views.tokens.token_headings import is_waiting
from decodescope.app.widgets.building import STRETCH, Gap, arrange
from decodescope.app.widgets.inputs import ScrollArea
from decodescope.app.widgets.labels import TextBlock
from decodescope.app.widgets.overlays import FocusRing
from decodescope.core import explain_token
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.views.inspector.node_card import NodeCard
    from decodescope.app.views.inspector.token_page import TokenPage
    from decodescope.app.views.inspector.what_if_card import WhatIfContent
    from decodescope.core.events import Event, TokenChosen


class EmptyInspectorPage(Themed, QFrame):
    """The page without a token: what is missing, and a button that runs the prompt."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self.heading, self.title, self.facts = (TextBlock(self, role) for role in ("heading", "title", "muted"))
        self.offer = FillButton(tr("Run this prompt"), self)
        self._column = arrange(QVBoxLayout(self), self.heading, self.title, self.facts, Gap(6), self.offer, STRETCH)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(4))
        for block in (self.heading, self.title, self.facts):
            block.refit()

    def set_scroll_bar_width(self, width: int) -> None:
        """Reduce the right margin by the pixels that the scroll bar takes."""
        self._column.setContentsMargins(page_margins(self._theme, width))

    def show_state(self, run: Run | None) -> None:
        """Show that the first token is to be guessed or pending, or that nothing has been run."""
        if run is not None and run.is_withheld:
            title, facts = tr("Your guess comes first"), tr("After your answer, this shows why the token was chosen.")
        elif is_waiting(run):
            title, facts = tr("Waiting for the first token"), ""
        else:
            title = tr("No token yet")
            facts = tr("Run something, then click a token to see why it was chosen.")
        self.heading.set_text(tr("INSPECTOR"))
        self.title.set_text(title)
        self.facts.set_text(facts)
        self.offer.update_state(run is None or not (run.is_withheld or is_waiting(run)))
        self._column.activate()


class InspectorPages(Themed, ScrollArea):
    """Scroll area with the pages. `tokenPageCreated(TokenPage)`: the token page has been created."""

    tokenPageCreated = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._token: TokenPage | None = None
        self._node: NodeCard | None = None
        self._is_empty = True
        self.setAccessibleName(tr("Inspector"))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._container = QWidget(self)
        self._column = arrange(QVBoxLayout(self._container), margins=0)
        self.empty = EmptyInspectorPage(self._container)
        self._column.addWidget(self.empty)
        self.setWidget(self._container)
        self.verticalScrollBar().rangeChanged.connect(self._update_margins)

    @property
    def token(self) -> TokenPage:
        """The token page, created on first access."""
        if self._token is None:
            from decodescope.app.views.inspector.token_page import TokenPage

            self._token = TokenPage(self._container)
            self._token.set_theme(self._theme)
            self._token.hide()
            self._column.addWidget(self._token)
            self._update_margins()
            self.tokenPageCreated.emit(self._token)
        return self._token

    @Slot()
    def create_token_page(self) -> None:
        """Create the token page while the program is idle."""
        assert self.token is not None

    @property
    def shows_node(self) -> bool:
        """Whether the node page is visible."""
        return self._node is not None and self._node.report is not None

    def restyle(self, theme: Theme) -> None:
        self._update_margins()

    def show_report(self, report: NodeReport | None) -> None:
        """Show the page of a node; None hides it."""
        if report is not None and self._node is None:
            from decodescope.app.views.inspector.node_card import NodeCard

            self._node = NodeCard(self._container)
            self._node.set_theme(self._theme)
            self._column.addWidget(self._node)
        if self._node is not None:
            self._node.show_report(report)
        self._update_visibility()

    def show_empty(self, run: Run | None) -> None:
        """Show the page without a token of `run`."""
        self._is_empty = True
        self.empty.show_state(run)
        self._update_visibility()

    def show_token_page(self) -> TokenPage:
        """Show the token page and return it."""
        self._is_empty = False
        page = self.token
        self._update_visibility()
        return page

    def _update_visibility(self) -> None:
        self.empty.setVisible(self._is_empty and not self.shows_node)
        if self._token is not None:
            self._token.setVisible(not self._is_empty and not self.shows_node)

    @Slot()
    def _update_margins(self) -> None:
        """Subtract the scroll bar's width from the margin, so that text does not rewrap when the bar appears."""
        bar = self.verticalScrollBar()
        bar_width = bar.sizeHint().width() if bar.maximum() > bar.minimum() else 0
        for page in (self.empty, self._token):
            if page is not None:
                page.set_scroll_bar_width(bar_width)


FOLLOW_INTERVAL_MS = 500
"""Minimum interval between updates while text is streaming, in ms: figures cannot be read faster, and an update takes
as long as several steps of a small model. After a longer pause, the next token is shown at once.
"""
EMPTY_PAGE_DELAY_MS = 250
"""Time in ms in which a new run may start writing before the empty page is shown."""

MAX_MINIMUM_WIDTH = 360
"""Upper limit in pixels of the panel's minimum width with large type."""


class Inspector(View):
    """Explains the selected token, or the newest one. `internalsCreated(StepInternalsPanel)`: the panel of step
    internals has been created.
    """

    internalsCreated = Signal(object)

    stagesWanted = Signal(object)
    """Run the stages in this order, by name; None restores the default order."""
    backWanted = Signal()
    """Restore the settings of the run."""
    targetMissing = Signal(str, str)
    """Report that the requested item does not exist: (reason, title)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("inspector", parent)
        self._run: Run | None = None
        self._shown_token: TokenChosen | None = None
        self._what_if: WhatIfContent | None = None
        self.area = InspectorPages(self)
        self._ring = FocusRing(self.area)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._update_page)
        self._last_update = time.monotonic()
        """Time of the last update, or of the start of the run."""
        self.area.tokenPageCreated.connect(self._connect_token_page)
        self.area.empty.offer.fillRequested.connect(lambda: self.signals.fillRequested.emit(AS_SET))
        self.setAccessibleName(tr("Inspector"))
        self.setFocusProxy(self.area)
        arrange(QVBoxLayout(self), self.area, margins=0)
        self.set_theme(theme_for("light"))
        self._update_page()

    @property
    def page(self) -> TokenPage:
        """The token page, created on first access."""
        return self.area.token

    @Slot(object)
    def _connect_token_page(self, page: TokenPage) -> None:
        """Connect the signals of the token page."""
        page.internalsCreated.connect(self.internalsCreated)
        page.backWanted.connect(self.backWanted)
        page.runWhatIfWanted.connect(self._on_run_what_if)
        page.branch.branch_requested.connect(self._on_branch)
        page.funnel.orderWanted.connect(self._on_order)

    def restyle(self, theme: Theme) -> None:
        self.setMinimumWidth(min(theme.px(284), MAX_MINIMUM_WIDTH))

    @Slot()
    def focus_branch_field(self) -> None:
        """Focus the field for other text at this position."""
        self.page.branch.field.setFocus()

    def no_branch_reason(self) -> str:
        """Return why the shown token cannot be replaced; empty if it can."""
        if self._shown_token is None or self.area.shows_node:
            return tr("Pick a token of a run first.")
        branch = self.page.branch
        return "" if branch.isEnabled() else branch.toolTip()

    def bring_up_to_date(self) -> None:
        """Show the newest token now, not at the next update."""
        super().bring_up_to_date()
        if self._timer.isActive():
            self._timer.stop()
            self._update_page()

    def add_context_actions(self, menu: QMenu, position: QPoint) -> None:
        """Add what can be done with the shown token: branches, and copying its explanation."""
        run, index, token = self._run, self.current_index, self._shown_token
        if run is None or index is None or token is None or self.area.shows_node:
            return
        if not branch_unsupported_reason(run):
            from decodescope.app.views.tokens.branches import add_branch_actions  # rarely needed

            add_branch_actions(menu, run, index, self.signals, self.grammar)
        copy = QGuiApplication.clipboard().setText
        menu.addAction(tr("Copy the token"), partial(copy, token.text or token.piece))
        menu.addAction(tr("Copy the explanation"), partial(copy, str(explain_token(token))))
        menu.addAction(tr("Next uncertain step"), self.next_uncertain).setEnabled(not uncertain_unavailable_reason(run))

    def export_table(self) -> Table:
        """Return the alternatives of the shown token; a node's figures belong to the view that shows its tree."""
        token = self._shown_token if not self.area.shows_node else None
        return alternative_table(token) if token is not None and token.alternatives else ()

    @Slot(object)
    def show_report(self, report: NodeReport | None) -> None:
        """Show the node that a view has selected instead of a token, until None is passed."""
        self.area.show_report(report)

    def show_what_if(self, what_if: WhatIfContent | None) -> None:
        """Show the selected step under changed settings; None: as recorded."""
        if what_if is not None or self._what_if is not None:
            self._what_if, self._shown_token = what_if, None
            self._update_page()

    def grammar_changed(self, grammar: object) -> None:
        """Update the alternatives allowed by the grammar."""
        super().grammar_changed(grammar)
        self._shown_token = None
        self._update_page()

    def wording_changed(self) -> None:
        """Rebuild the text, for example at another level of detail."""
        self._shown_token = None
        self._update_page()

    def show_run(self, run: Run | None) -> None:
        """Show another run; None for no run."""
        self._run, self._last_update = run, time.monotonic()
        self.show_report(None)
        if self._shown_token is not None and self.current_index is None and is_waiting(run):
            self._timer.start(EMPTY_PAGE_DELAY_MS)  # avoid a short-lived empty page before a run that starts soon
        else:
            self._update_page()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Follow the newest token, at a readable rate."""
        self._run = run
        if run.finished is not None or run.outcome is not None:
            self._timer.start(0)  # text and finish events come first
        elif run.selected is None:
            self._timer.start(max(0, FOLLOW_INTERVAL_MS - round((time.monotonic() - self._last_update) * 1000)))

    def cursor_moved(self, run: Run) -> None:
        """Follow the cursor at once, because a replay moves on quickly."""
        self._run = run
        if run.selected is None:
            self._timer.stop()
            self._update_page()

    def selection_changed(self, run: Run) -> None:
        """Show the selected token at once."""
        self._run = run
        self._update_page()

    @property
    def current_index(self) -> int | None:
        """Index of the shown token; None for none."""
        run = self._run
        if run is None:
            return None
        newest = min(run.cursor, len(run.tokens)) - 1  # a beam search's best text may be shorter than the search
        return run.selected if run.selected is not None else newest if newest >= 0 else None

    @Slot()
    def _update_page(self) -> None:
        index, run, self._last_update = self.current_index, self._run, time.monotonic()
        if run is None or index is None or index >= len(run.tokens):
            self._shown_token = self._what_if = None
            self.area.show_empty(run)
            return
        token = run.tokens[index]
        is_growing = run.finished is None and run.outcome is None
        follows = run.selected is None and run.is_following and is_growing
        heading = tr("TOKEN {number:,} · FOLLOWING THE NEWEST") if follows else tr("TOKEN {number:,}")
        page = self.area.show_token_page()
        page.keep_height(follows and self._shown_token is not None)
        page.heading.set_text(heading.format(number=run.number_of(index)) + _uncertainty_suffix(run, index))
        if token is not self._shown_token:
            self._shown_token = token
            if self._what_if is not None and not self._what_if.is_about(token):
                self._what_if = None
            page.show_token(run, token, self._what_if, forbidden_ids(run, token, self.grammar))

    @Slot()
    def next_uncertain(self) -> None:
        """Go to the next of the most uncertain steps, in order of uncertainty."""
        if reason := uncertain_unavailable_reason(self._run):
            self.targetMissing.emit(reason, tr("No uncertain step"))
            return
        places = uncertain_steps(self._run)
        here = self.current_index if self._run is not None and self._run.selected is not None else None
        place = places.index(here) + 1 if here in places else 0
        self.signals.inspectorRequested.emit()
        self.signals.tokenActivated.emit(places[place % len(places)])

    @Slot()
    def _on_run_what_if(self) -> None:
        """Continue from the what-if step, with the token that would be chosen if it is known."""
        index, what_if = self.current_index, self._what_if
        if index is not None and self._run is not None and what_if is not None and what_if.replay is not None:
            chosen = (what_if.replay.after.id,) if what_if.replay.is_decided else ()
            before = tuple(token.id for token in self._run.tokens[:index])
            self.signals.branchRequested.emit(PathContinuation((*before, *chosen), len(before)))

    @Slot(object)
    def _on_order(self, stages: list[str] | None) -> None:
        """Apply the new stage order, and select the step on which it was changed."""
        index = self.current_index
        if index is not None:
            self.signals.tokenActivated.emit(index)
            self.stagesWanted.emit(stages)

    @Slot(object)
    def _on_branch(self, what: int | str) -> None:
        index = self.current_index
        if index is not None:
            self.signals.branchRequested.emit(TokenReplacement(index, what))


def _uncertainty_suffix(run: Run, index: int) -> str:
    """Return the heading suffix with the step's rank among the most uncertain ones."""
    places = uncertain_steps(run)
    if index not in places:
        return ""
    return tr(" · UNCERTAIN {number} OF {count}").format(number=places.index(index) + 1, count=len(places))
