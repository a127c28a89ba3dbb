"""The inspector: of which token, or node of a tree, it speaks, and when; what it says of one is `TokenPage`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.state.branching import PathContinuation, TokenReplacement, forbidden_ids
from app.state.empty_view import AS_SET
from app.state.run import Run
from app.state.token_stats import uncertain_steps, uncertain_unavailable_reason
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.inspector.inspector_section import page_margins
from app.views.node_reports import NodeReport
from app.views.shared.empty_page import FillButton
from app.views.shared.table_export import alternative_table
from app.views.tokens.token_headings import is_waiting
from app.widgets.inputs import ScrollArea
from app.widgets.labels import TextBlock
from app.widgets.overlays import FocusRing
from resources.language import tr

if TYPE_CHECKING:
    from app.views.inspector.node_card import NodeCard
    from app.views.inspector.token_page import TokenPage
    from app.views.inspector.what_if_card import WhatIfContent
    from core.events import Event, TokenChosen


class EmptyInspectorPage(QFrame):
    """There is no token yet, and what can be done about it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "panel")
        self._theme = theme_for("light")
        self.heading, self.title, self.facts = (TextBlock(self, role) for role in ("heading", "title", "muted"))
        self.offer = FillButton(tr("Run this prompt"), self)
        self._column = QVBoxLayout(self)
        for widget in (self.heading, self.title, self.facts):
            self._column.addWidget(widget)
        self._column.addSpacing(6)
        self._column.addWidget(self.offer)
        self._column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._column.setSpacing(theme.px(4))
        for block in (self.heading, self.title, self.facts):
            block.refit()

    def set_scroll_bar_width(self, width: int) -> None:
        """Have the right margin narrower by so many pixels, which a scroll bar has taken."""
        self._column.setContentsMargins(page_margins(self._theme, width))

    def show_state(self, waiting: bool) -> None:
        """None has come yet (`waiting`), or nothing was run."""
        self.heading.set_text(tr("INSPECTOR"))
        self.title.set_text(tr("Waiting for the first token") if waiting else tr("No token yet"))
        self.facts.set_text(
            "" if waiting else tr("Run something, then click a token: here you read why it was chosen.")
        )
        self.offer.update_state(not waiting)
        self._column.activate()


class InspectorPages(ScrollArea):
    """`tokenPageCreated(TokenPage)`: there is one now."""

    tokenPageCreated = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._token: TokenPage | None = None
        self._node: NodeCard | None = None
        self._is_empty = True
        self.setAccessibleName(tr("Inspector"))
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._container = QWidget(self)
        self._column = QVBoxLayout(self._container)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.empty = EmptyInspectorPage(self._container)
        self._column.addWidget(self.empty)
        self.setWidget(self._container)
        self.verticalScrollBar().rangeChanged.connect(self._update_margins)

    @property
    def token(self) -> TokenPage:
        """The page of a token."""
        if self._token is None:
            from app.views.inspector.token_page import TokenPage

            self._token = TokenPage(self._container)
            self._token.set_theme(self._theme)
            self._token.hide()
            self._column.addWidget(self._token)
            self._update_margins()
            self.tokenPageCreated.emit(self._token)
        return self._token

    @Slot()
    def create_token_page(self) -> None:
        """Make the page of a token while there is nothing else to do."""
        assert self.token is not None

    @property
    def shows_node(self) -> bool:
        """Whether a node's page is the one that is seen."""
        return self._node is not None and self._node.report is not None

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for page in (self.empty, self._token, self._node):
            if page is not None:
                page.set_theme(theme)
        self._update_margins()

    def show_report(self, report: NodeReport | None) -> None:
        """Speak of a node; None: no more."""
        if report is not None and self._node is None:
            from app.views.inspector.node_card import NodeCard

            self._node = NodeCard(self._container)
            self._node.set_theme(self._theme)
            self._column.addWidget(self._node)
        if self._node is not None:
            self._node.show_report(report)
        self._update_visibility()

    def show_empty(self, waiting: bool) -> None:
        """There is no token to speak of."""
        self._is_empty = True
        self.empty.show_state(waiting)
        self._update_visibility()

    def show_token_page(self) -> TokenPage:
        """There is one; its page."""
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
        """The scroll bar takes its room from the margin, so that nothing is wrapped anew when it comes and goes."""
        bar = self.verticalScrollBar()
        bar_width = bar.sizeHint().width() if bar.maximum() > bar.minimum() else 0
        for page in (self.empty, self._token):
            if page is not None:
                page.set_scroll_bar_width(bar_width)


FOLLOW_INTERVAL_MS = 500
"""While text streams the inspector follows the newest token twice a second at most: nobody reads figures sooner, and
each time takes as long as several steps of a small model. A token that comes later than that is spoken of at once."""
EMPTY_PAGE_DELAY_MS = 250
"""A run that has begun to write by then follows the one before without an empty page in between."""

MAX_MINIMUM_WIDTH = 360
"""Pixels that large type may claim for the panel at least."""


class Inspector(View):
    """Speaks of the selected token, else of the newest one. `internalsCreated(InsidePart)`: there is one now."""

    internalsCreated = Signal(object)

    stagesWanted = Signal(object)
    """The stages are to act in this order, by name; None: in the default one."""
    backWanted = Signal()
    """What is set is to be what the run had."""
    targetMissing = Signal(str, str)
    """Why what was asked for is not there; what that is called."""

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
        """When it has last spoken, or a run has begun."""
        self.area.tokenPageCreated.connect(self._connect_token_page)
        self.area.empty.offer.fillRequested.connect(lambda: self.signals.fillRequested.emit(AS_SET))
        self.setAccessibleName(tr("Inspector"))
        self.setFocusProxy(self.area)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.area)
        self.set_theme(theme_for("light"))
        self._update_page()

    @property
    def page(self) -> TokenPage:
        """What it says of a token."""
        return self.area.token

    @Slot(object)
    def _connect_token_page(self, page: TokenPage) -> None:
        """Hear what is wanted on the page of a token."""
        page.internalsCreated.connect(self.internalsCreated)
        page.backWanted.connect(self.backWanted)
        page.runWhatIfWanted.connect(self._on_run_what_if)
        page.branch.wanted.connect(self._on_branch)
        page.funnel.orderWanted.connect(self._on_order)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        for whole in (self._ring, self.area):
            whole.set_theme(theme)
        self.setMinimumWidth(min(theme.px(284), MAX_MINIMUM_WIDTH))

    @Slot()
    def focus_branch_field(self) -> None:
        """Have words typed in place of the token."""
        self.page.branch.field.setFocus()

    def no_branch_reason(self) -> str:
        """Why no other words can stand in the place of the token that is shown; empty where they can."""
        if self._shown_token is None or self.area.shows_node:
            return tr("Pick a token of a run first.")
        branch = self.page.branch
        return "" if branch.isEnabled() else branch.toolTip()

    def export_table(self) -> Table:
        """The alternatives of the token it speaks of; those of a node are figures of the view that it was picked in."""
        token = self._shown_token if not self.area.shows_node else None
        return alternative_table(token) if token is not None and token.alternatives else ()

    @Slot(object)
    def show_report(self, report: NodeReport | None) -> None:
        """Speak of what a view has picked instead of a token, as long as it is not None."""
        self.area.show_report(report)

    def show_what_if(self, what_if: WhatIfContent | None) -> None:
        """Show the selected step as it would be; None: as it was."""
        if what_if is not None or self._what_if is not None:
            self._what_if, self._shown_token = what_if, None
            self._update_page()

    def grammar_changed(self, grammar: object) -> None:
        """Offer what a run that is held to it can go on with."""
        super().grammar_changed(grammar)
        self._shown_token = None
        self._update_page()

    def wording_changed(self) -> None:
        """Say it all again."""
        self._shown_token = None
        self._update_page()

    def show_run(self, run: Run | None) -> None:
        """Speak of another run; None for no run at all."""
        self._run, self._last_update = run, time.monotonic()
        self.show_report(None)
        if self._shown_token is not None and self.current_index is None and is_waiting(run):
            self._timer.start(EMPTY_PAGE_DELAY_MS)  # a run that is soon there would have the page come and go
        else:
            self._update_page()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Follow the newest token, not faster than the eye."""
        self._run = run
        if run.finished is not None or run.outcome is not None:
            self._timer.start(0)  # the text and its end come first
        elif run.selected is None:
            self._timer.start(max(0, FOLLOW_INTERVAL_MS - round((time.monotonic() - self._last_update) * 1000)))

    def cursor_moved(self, run: Run) -> None:
        """Follow the cursor at once: a replay is read, and stands elsewhere a moment later."""
        self._run = run
        if run.selected is None:
            self._timer.stop()
            self._update_page()

    def selection_changed(self, run: Run) -> None:
        """Speak of the selected token at once."""
        self._run = run
        self._update_page()

    @property
    def current_index(self) -> int | None:
        """Which token it speaks of; None for none."""
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
            self.area.show_empty(is_waiting(run))
            return
        token = run.tokens[index]
        is_growing = run.finished is None and run.outcome is None
        follows = run.selected is None and run.is_following and is_growing
        heading = tr("TOKEN {number:,} · FOLLOWING THE NEWEST") if follows else tr("TOKEN {number:,}")
        page = self.area.show_token_page()
        page.heading.set_text(heading.format(number=run.number_of(index)) + _uncertainty_suffix(run, index))
        if token is not self._shown_token:
            self._shown_token = token
            if self._what_if is not None and not self._what_if.is_about(token):
                self._what_if = None
            page.show_token(run, token, self._what_if, forbidden_ids(run, token, self.grammar))

    @Slot()
    def next_uncertain(self) -> None:
        """On to the next of the steps that the model doubted most, the most doubtful first."""
        if reason := uncertain_unavailable_reason(self._run):
            self.targetMissing.emit(reason, tr("No step of doubt"))
            return
        places = uncertain_steps(self._run)
        here = self.current_index if self._run is not None and self._run.selected is not None else None
        place = places.index(here) + 1 if here in places else 0
        self.signals.inspectorRequested.emit()
        self.signals.tokenActivated.emit(places[place % len(places)])

    @Slot()
    def _on_run_what_if(self) -> None:
        """Go on from the step as it would be: with the token that would be chosen, where that is known."""
        index, what_if = self.current_index, self._what_if
        if index is not None and self._run is not None and what_if is not None and what_if.replay is not None:
            chosen = (what_if.replay.after.id,) if what_if.replay.is_decided else ()
            before = tuple(token.id for token in self._run.tokens[:index])
            self.signals.branchRequested.emit(PathContinuation((*before, *chosen), len(before)))

    @Slot(object)
    def _on_order(self, stages: list[str] | None) -> None:
        """The order is another from now on, and the step that it was changed on is the one to look at."""
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
    """Which of them a step is."""
    places = uncertain_steps(run)
    if index not in places:
        return ""
    return tr(" · DOUBT {number} OF {count}").format(number=places.index(index) + 1, count=len(places))
