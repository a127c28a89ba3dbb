"""The inspector: why this token, in words first, then the candidates, the funnel and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.state.branching import Instead, Onward, why_not_branch
from app.state.doubt import most_doubtful
from app.state.filling import AS_SET
from app.state.run import Run
from app.state.supposing import as_order, moved
from app.theme.theme import Theme, theme_for
from app.views.base import Table, View
from app.views.inspector import rows
from app.views.inspector.branch_bar import BranchBar
from app.views.inspector.node_card import NodeCard
from app.views.inspector.section import Section, tell_alternatives, tell_layers, tell_second
from app.views.reports import NodeReport
from app.views.shared.tables import of_alternatives
from app.views.shared.terms import explain
from app.views.text.wording import token_text
from app.views.tokens.headings import is_waiting
from app.widgets.bars import Bars
from app.widgets.empty_offer import EmptyOffer
from app.widgets.focus_ring import FocusRing
from app.widgets.funnel import Funnel
from app.widgets.text_block import TextBlock
from core import explain_token
from resources.language import tr

if TYPE_CHECKING:
    from app.views.inspector.inside import InsideSection
    from app.views.inspector.pictures import StagePictures
    from app.views.inspector.what_if import Supposed, WhatIfCard
    from core import WhatIf
    from core.events import Event, TokenChosen

FOLLOW_MS = 100
"""While text streams the inspector follows the newest token ten times a second; more only tires the eye."""

LEAST_WIDTH = 360
"""Pixels that large type may claim for the panel at least."""


class Inspector(View):
    """Speaks of the selected token, else of the newest one. `insideMade(InsidePart)`: there is one now."""

    insideMade = Signal(object)

    stagesWanted = Signal(object)
    """The stages are to act in this order, by name; None: in the default one."""
    backWanted = Signal()
    """What is set is to be what the run had."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("inspector", parent)
        theme = theme_for("light")
        self._run: Run | None = None
        self._told: TokenChosen | None = None
        self.area = QScrollArea(self)
        self._ring = FocusRing(self.area)
        self._body = QFrame(self)
        self._body.setProperty("role", "panel")
        self._heading = TextBlock(self._body, "heading")
        self._title = TextBlock(self._body, "title")
        self._facts = TextBlock(self._body, "muted")
        self._card = QFrame(self._body)
        self._card.setProperty("role", "card")
        self._sentence = TextBlock(self._card, rich=True)
        self._bars, self._layer_bars = Bars(theme, tr("Alternatives")), Bars(theme, tr("Layers"))
        self._stages, self._figures = Funnel(theme), TextBlock(self._body, "muted", rich=True)
        self._candidates = Section(tr("Alternatives"), self._bars, "row.alternatives", self._body)
        self.branch = BranchBar(self._body)
        self._second_bars = Bars(theme, tr("Second model"))
        self._second = Section(tr("Second model"), self._second_bars, "divergence", self._body)
        self._layers = Section(tr("Layers"), self._layer_bars, "row.layers", self._body)
        self._funnel = Section(tr("Funnel"), self._stages, "row.funnel", self._body)
        self._pictures: StagePictures | None = None
        self._looks: InsideSection | None = None
        self._numbers = Section(tr("This step"), self._figures, "row.entropy row.perplexity row.time", self._body)
        for part, name in ((self._card, "reason"), (self._bars, "alternatives"), (self._stages, "funnel")):
            part.setObjectName(name)
        self._what_if: WhatIfCard | None = None
        """Made when something is supposed for the first time."""
        self._supposed: Supposed | None = None
        self._default_order = QPushButton(tr("Default order"), self._body)
        self._default_order.setObjectName("defaultOrder")
        self._default_order.setProperty("role", "quiet")
        self._default_order.setToolTip(tr("The stages are to act in the order of transformers again"))
        self._card_of_node = NodeCard(self)
        self.offer = EmptyOffer(tr("Run this prompt"), self._body)
        self.offer.wanted.connect(lambda: self.signals.fillWanted.emit(AS_SET))
        self._timer = QTimer(self, singleShot=True, interval=FOLLOW_MS)
        self._timer.timeout.connect(self._tell)
        explain(self._facts, "probability rank surprise")
        explain(self._figures, self._numbers.term)
        self._build()
        self.set_theme(theme)
        self._tell()

    @property
    def _sections(self) -> tuple[Section, ...]:
        return self._candidates, self._second, self._layers, self._funnel, self._numbers

    def _build(self) -> None:
        self.setAccessibleName(tr("Inspector"))
        self.area.setAccessibleName(tr("Inspector"))
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self._inside = QHBoxLayout(self._card)
        self._inside.addWidget(self._sentence)
        column = self._column = QVBoxLayout(self._body)
        for widget in (self._heading, self._title, self._facts, self._card, *self._sections):
            column.addWidget(widget)
        column.insertWidget(column.indexOf(self._candidates) + 1, self.branch)
        column.insertSpacing(column.indexOf(self._card), 6)
        column.insertWidget(column.indexOf(self._card), self.offer)
        column.addStretch(1)
        page = QWidget(self)
        pages, outer = QVBoxLayout(page), QVBoxLayout(self)
        for layout in (pages, outer):
            layout.setContentsMargins(0, 0, 0, 0)
        pages.addWidget(self._body)
        pages.addWidget(self._card_of_node)
        self._card_of_node.hide()
        self.area.setWidget(page)
        self._bars.rowPicked.connect(self.branch.pick)
        self.branch.picked.connect(self._bars.mark)
        self.branch.wanted.connect(self._on_branch)
        self._stages.moved.connect(self._on_moved)
        column.insertWidget(column.indexOf(self._funnel) + 1, self._default_order, 0, Qt.AlignmentFlag.AlignLeft)
        self._default_order.clicked.connect(partial(self._order, None))
        self.area.verticalScrollBar().rangeChanged.connect(self._keep_width)
        outer.addWidget(self.area)
        self.setFocusProxy(self.area)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._theme = theme
        for whole in (self._card_of_node, self._ring):
            whole.set_theme(theme)
        self._column.setSpacing(theme.px(4))
        self._keep_width()
        self.setMinimumWidth(min(theme.px(284), LEAST_WIDTH))
        self._inside.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        # Three lines, so that what is below does not move with every token.
        self._sentence.set_least_height(theme.px(17) * 3)
        for block in (self._heading, self._title, self._facts, self._figures):
            block.refit()
        for part in (self._bars, self._second_bars, self._layer_bars, self._stages, self.branch):
            part.set_theme(theme)
        if self._pictures is not None:
            self._pictures.set_theme(theme)
        if self._looks is not None:
            self._looks.set_theme(theme)
        for section in self._sections:
            section.set_theme(theme)
            section.setContentsMargins(0, theme.px(14), 0, 0)
        if self._what_if is not None:
            self._what_if.set_theme(theme)

    @Slot()
    def _keep_width(self) -> None:
        """The scroll bar takes its room from the margin, so that nothing is wrapped anew when it comes and goes."""
        bar, margin = self.area.verticalScrollBar(), self._theme.px(16)
        taken = min(margin, bar.sizeHint().width()) if bar.maximum() > bar.minimum() else 0
        self._column.setContentsMargins(margin, self._theme.px(14), margin - taken, margin)

    def figures(self) -> Table:
        """The alternatives of the token it speaks of; those of a node are figures of the view that it was picked in."""
        speaks_of_token = self._card_of_node.isHidden() and self._told is not None
        return of_alternatives(self._told) if speaks_of_token and self._told and self._told.alternatives else ()

    @Slot(object)
    def show_report(self, report: NodeReport | None) -> None:
        """Speak of what a view has picked instead of a token, as long as it is not None."""
        if report is not None:
            self._card_of_node.show_report(report)
        self._card_of_node.setVisible(report is not None)
        self._body.setVisible(report is None)

    def show_supposed(self, supposed: Supposed | None) -> None:
        """Show the selected step as it would be; None: as it was."""
        if supposed is not None or self._supposed is not None:
            self._supposed, self._told = supposed, None
            self._tell()

    def words_changed(self) -> None:
        """Say it all again."""
        self._told = None
        self._tell()

    def show_run(self, run: Run | None) -> None:
        """Speak of another run; None for no run at all."""
        self._run = run
        self.show_report(None)
        self._tell()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Follow the newest token, not faster than the eye."""
        self._run = run
        if run.finished is not None:
            self._timer.stop()
            self._tell()
        elif run.selected is None and not self._timer.isActive():
            self._timer.start()

    def cursor_moved(self, run: Run) -> None:
        """Follow the cursor at once: a replay is read, and stands elsewhere a moment later."""
        self._run = run
        if run.selected is None:
            self._timer.stop()
            self._tell()

    def selection_changed(self, run: Run) -> None:
        """Speak of the selected token at once."""
        self._run = run
        self._tell()

    @property
    def subject(self) -> int | None:
        """Which token it speaks of; None for none."""
        run = self._run
        if run is None:
            return None
        newest = min(run.cursor, len(run.tokens)) - 1  # a beam search's best text may be shorter than the search
        return run.selected if run.selected is not None else newest if newest >= 0 else None

    @Slot()
    def _tell(self) -> None:
        index = self.subject
        if self._run is None or index is None or index >= len(self._run.tokens):
            self._tell_nothing()
            return
        token = self._run.tokens[index]
        newest = self._run.selected is None and self._run.following and self._run.finished is None
        heading = tr("TOKEN {number:,} · NEWEST") if newest else tr("TOKEN {number:,}")
        self._heading.set_text(heading.format(number=index + 1) + self._doubt_told(index))
        if token is not self._told:
            self._told = token
            self._tell_token(token, self._run.started.vocabulary if self._run.started else 0)

    def _doubt_told(self, index: int) -> str:
        """Which of the most doubtful steps it is, once the run has ended."""
        doubtful = self._doubtful()
        if index not in doubtful:
            return ""
        return tr(" · DOUBT {number} OF {count}").format(number=doubtful.index(index) + 1, count=len(doubtful))

    def _doubtful(self) -> list[int]:
        run = self._run
        return most_doubtful(run.tokens) if run is not None and run.finished is not None else []

    @Slot()
    def next_doubt(self) -> None:
        """On to the next of the steps that the model doubted most, the most doubtful first."""
        doubtful = self._doubtful()
        if doubtful:
            here = self.subject if self._run is not None and self._run.selected is not None else None
            place = doubtful.index(here) + 1 if here in doubtful else 0
            self.signals.inspectorRequested.emit()
            self.signals.tokenActivated.emit(doubtful[place % len(doubtful)])

    def _tell_nothing(self) -> None:
        self._told = None
        waiting = is_waiting(self._run)
        self._heading.set_text(tr("INSPECTOR"))
        self._title.set_text(tr("Waiting for the first token") if waiting else tr("No token yet"))
        self._facts.set_text(
            "" if waiting else tr("Run something, then click a token: here you read why it was chosen.")
        )
        pictures = (self._pictures,) if self._pictures is not None else ()
        for part in (self._card, self.branch, self._default_order, *pictures, *self._sections):
            part.hide()
        if self._looks is not None:
            self._looks.hide()
        self._suppose(None)
        self.offer.offer(not waiting)
        self._settle()

    def _tell_token(self, token: TokenChosen, vocabulary: int) -> None:
        self._title.set_text(token_text(token.piece))
        self._facts.set_text(rows.facts(token, vocabulary))
        self._sentence.set_text(rows.emphasized(explain_token(token)))
        self.offer.offer(False)
        self._card.show()
        found = self._suppose(token)
        shown = found.after if found is not None else token
        tell_alternatives(self._candidates, self._bars, shown)
        self.branch.offer(token, why_not_branch(self._run))
        self.branch.show()
        tell_second(self._second, self._second_bars, self._run, token)
        tell_layers(self._layers, self._layer_bars, token)
        self._tell_inside(token)
        stages = rows.funnel_stages(shown, found.before if found is not None else None)
        self._stages.set_stages(stages)
        self._funnel.setVisible(bool(stages))
        is_usual = as_order(self._stages.movable) is None
        self._funnel.set_title(tr("Funnel"), "" if is_usual else tr("Order of the stages changed."))
        self._default_order.setVisible(bool(stages) and not is_usual)
        self._tell_pictures(shown)
        self._figures.set_text(rows.joined(rows.numbers(token)))
        self._numbers.show()
        self._settle()

    def _tell_pictures(self, token: TokenChosen) -> None:
        """Of stages that tell more than how many they left; made with the first step that has one."""
        told = any(stage.detail is not None for stage in token.funnel)
        if told and self._pictures is None:
            from app.views.inspector.pictures import StagePictures

            self._pictures = StagePictures(self._theme, self._body)
            self._column.insertWidget(self._column.indexOf(self._funnel) + 1, self._pictures)
        if self._pictures is not None:
            self._pictures.setVisible(told)
            if told and self._run is not None:
                self._pictures.tell(self._run, token)

    def _tell_inside(self, token: TokenChosen) -> None:
        """The last part is made with the first token: nobody looks inside before."""
        if self._looks is None:
            from app.views.inspector.inside import InsideSection

            self._looks = InsideSection(self._body)
            self._looks.set_theme(self._theme)
            self._column.insertWidget(self._column.indexOf(self._numbers), self._looks)
            self.insideMade.emit(self._looks.part)
        self._looks.part.begin(token)
        self._looks.show()

    def _suppose(self, token: TokenChosen | None) -> WhatIf | None:
        """Show or hide what is supposed of a token; gives what came of it."""
        supposed = self._supposed
        if supposed is not None and (token is None or not supposed.speaks_of(token)):
            supposed = self._supposed = None
        if supposed is None:
            if self._what_if is not None:
                self._what_if.hide()
            return None
        if self._what_if is None:
            self._what_if = self._make_what_if()
        self._what_if.tell(supposed)
        self._what_if.show()
        return supposed.found

    def _make_what_if(self) -> WhatIfCard:
        from app.views.inspector.what_if import WhatIfCard

        card = WhatIfCard(self._body)
        card.set_theme(self._theme)
        card.backWanted.connect(self.backWanted)
        card.runWanted.connect(self._on_run_so)
        place = self._column.indexOf(self._candidates)
        self._column.insertWidget(place, card)
        self._column.insertSpacing(place, 4)
        return card

    @Slot()
    def _on_run_so(self) -> None:
        """Go on from the step as it would be: with the token that would be chosen, where that is known."""
        index, supposed = self.subject, self._supposed
        if index is not None and self._run is not None and supposed is not None and supposed.found is not None:
            chosen = (supposed.found.after.id,) if supposed.found.is_decided else ()
            before = tuple(token.id for token in self._run.tokens[:index])
            self.signals.branchWanted.emit(Onward((*before, *chosen), len(before)))

    @Slot(str, int)
    def _on_moved(self, stage: str, place: int) -> None:
        """A stage was dragged."""
        self._order(as_order(moved(self._stages.movable, stage, place)))

    def _order(self, stages: list[str] | None) -> None:
        """The order is another from now on, and the step that it was changed on is the one to look at."""
        index = self.subject
        if index is not None:
            self.signals.tokenActivated.emit(index)
            self.stagesWanted.emit(stages)

    def _settle(self) -> None:
        """Give every part its place at once, so that no half-arranged state is ever painted."""
        self._inside.activate()
        if self._pictures is not None:
            self._pictures.settle()
        for section in self._sections:
            section.settle()
        self._column.activate()

    @Slot(object)
    def _on_branch(self, what: int | str) -> None:
        index = self.subject
        if index is not None:
            self.signals.branchWanted.emit(Instead(index, what))
