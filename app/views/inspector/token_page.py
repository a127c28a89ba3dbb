"""What the inspector says of one token: why it was chosen, in words first, then the candidates and the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.state.branching import why_not_branch
from app.theme.theme import Theme, theme_for
from app.views.inspector import inspector_rows
from app.views.inspector.branch_bar import BranchBar
from app.views.inspector.funnel_part import FunnelPart
from app.views.inspector.inspector_section import Section, tell_alternatives, tell_layers, tell_second
from app.views.inspector.page_margins import page_margins
from app.views.shared.glossary_link import explain
from app.views.text.token_wording import is_elsewhere, token_text
from app.widgets.bars import Bars
from app.widgets.text_block import TextBlock
from core import explain_token
from resources.language import tr

if TYPE_CHECKING:
    from app.state.run import Run
    from app.views.inspector.inside_section import InsideSection
    from app.views.inspector.what_if import WhatIfCard, WhatIfContent
    from core.events import TokenChosen


class TokenPage(QFrame):
    """Says what it is told. `insideMade(InsidePart)`: there is one now; `runSoWanted`: go on from what is supposed;
    `backWanted`: set what the run had."""

    insideMade = Signal(object)
    runSoWanted = Signal()
    backWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme = theme_for("light")
        self.setProperty("role", "panel")
        self.heading, self.title = TextBlock(self, "heading"), TextBlock(self, "title")
        self.facts, self.numbers = TextBlock(self, "muted"), TextBlock(self, "muted", rich=True)
        self.card = QFrame(self)
        self.card.setProperty("role", "card")
        self.card.setObjectName("reason")
        self.sentence = TextBlock(self.card, rich=True)
        self.bars, self.second_bars = Bars(theme, tr("Alternatives")), Bars(theme, tr("Second model"))
        self.bars.setObjectName("alternatives")
        self.layer_bars = Bars(theme, tr("Layers"))
        self.candidates = Section(tr("Alternatives"), self.bars, "row.alternatives", self)
        self.branch = BranchBar(self)
        self.second = Section(tr("Second model"), self.second_bars, "divergence", self)
        self.layers = Section(tr("Layers"), self.layer_bars, "row.layers", self)
        self.funnel = FunnelPart(theme, self)
        self.figures = Section(tr("This step"), self.numbers, "row.entropy row.perplexity row.time", self)
        self._what_if: WhatIfCard | None = None
        """Made when something is supposed for the first time."""
        self._inside: InsideSection | None = None
        """Made with the first token: nobody looks inside before."""
        explain(self.facts, "probability rank surprise")
        explain(self.numbers, self.figures.term)
        self._build()

    @property
    def _sections(self) -> tuple[Section | FunnelPart, ...]:
        return self.candidates, self.second, self.layers, self.funnel, self.figures

    def _build(self) -> None:
        self._within = QHBoxLayout(self.card)
        self._within.addWidget(self.sentence)
        column = self._column = QVBoxLayout(self)
        above, below = (self.heading, self.title, self.facts), (self.card, self.candidates, self.branch)
        for widget in (*above, *below, *self._sections[1:]):
            column.addWidget(widget)
        column.insertSpacing(len(above), 6)
        column.addStretch(1)
        self.bars.rowPicked.connect(self.branch.pick)
        self.branch.picked.connect(self.bars.mark)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._column.setSpacing(theme.px(4))
        self._within.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        # Three lines, so that what is below does not move with every token.
        self.sentence.set_least_height(theme.px(17) * 3)
        for block in (self.heading, self.title, self.facts, self.numbers):
            block.refit()
        late = [part for part in (self._inside, self._what_if) if part is not None]
        for part in (self.bars, self.second_bars, self.layer_bars, self.branch, *self._sections, *late):
            part.set_theme(theme)
        for section in self._sections:
            section.setContentsMargins(0, theme.px(14), 0, 0)

    def leave_room(self, taken: int) -> None:
        """Have the right margin narrower by so many pixels, which a scroll bar has taken."""
        self._column.setContentsMargins(page_margins(self._theme, taken))

    def tell(
        self, run: Run, token: TokenChosen, supposed: WhatIfContent | None, forbidden: frozenset[int] = frozenset()
    ) -> None:
        """Speak of a token of the run: its step as it was, or as it is `supposed` to be; `forbidden`: ids that the
        grammar allows no branch to go on with."""
        self.title.set_text(token_text(token.piece, token.is_special))
        self.facts.set_text(inspector_rows.facts(token, run.started.vocabulary if run.started else 0))
        self.sentence.set_text(inspector_rows.emphasized(explain_token(token)))
        self._tell_supposed(supposed)
        found = supposed.found if supposed is not None else None
        shown = found.after if found is not None else token
        tell_alternatives(self.candidates, self.bars, shown)
        self.branch.offer(token, why_not_branch(run), forbidden)
        tell_second(self.second, self.second_bars, run, token)
        tell_layers(self.layers, self.layer_bars, shown)
        self._tell_inside(token)
        self.funnel.tell(run, shown, inspector_rows.funnel_stages(shown, found.before if found is not None else None))
        self.numbers.set_text(inspector_rows.joined(inspector_rows.numbers(token)))
        self.figures.show()
        self.settle()

    def settle(self) -> None:
        """Give every part its place at once, so that no half-arranged state is ever painted."""
        self._within.activate()
        for section in self._sections:
            section.settle()
        self._column.activate()

    def _tell_supposed(self, supposed: WhatIfContent | None) -> None:
        if supposed is None:
            if self._what_if is not None:
                self._what_if.hide()
            return
        if self._what_if is None:
            self._what_if = self._make_what_if()
        self._what_if.tell(supposed)
        self._what_if.show()

    def _make_what_if(self) -> WhatIfCard:
        from app.views.inspector.what_if import WhatIfCard

        card = WhatIfCard(self)
        card.set_theme(self._theme)
        card.backWanted.connect(self.backWanted)
        card.runWanted.connect(self.runSoWanted)
        place = self._column.indexOf(self.candidates)
        self._column.insertWidget(place, card)
        self._column.insertSpacing(place, 4)
        return card

    def _tell_inside(self, token: TokenChosen) -> None:
        if self._inside is None:
            from app.views.inspector.inside_section import InsideSection

            self._inside = InsideSection(self)
            self._inside.set_theme(self._theme)
            self._column.insertWidget(self._column.indexOf(self.figures), self._inside)
            self.insideMade.emit(self._inside.part)
        self._inside.part.begin(token)
        reason = tr("Its engine shows nothing of what happens inside the model.") if is_elsewhere(token) else ""
        self._inside.part.refuse(reason)
        self._inside.show()
