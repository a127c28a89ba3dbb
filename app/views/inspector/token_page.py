"""What the inspector says of one token: why it was chosen, in words first, then the candidates and the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.state.branching import branch_unsupported_reason
from app.theme.theme import Theme, theme_for
from app.views.inspector import inspector_rows
from app.views.inspector.branch_bar import BranchBar
from app.views.inspector.funnel_part import FunnelSection
from app.views.inspector.inspector_section import (
    InspectorSection,
    show_alternatives,
    show_comparison_model,
    show_layer_choice,
)
from app.views.inspector.page_margins import page_margins
from app.views.shared.glossary_link import add_glossary_tooltip
from app.views.text.token_wording import is_remote_token, token_text
from app.widgets.bars import BarList
from app.widgets.text_block import TextBlock
from core import explain_token
from resources.language import tr

if TYPE_CHECKING:
    from app.state.run import Run
    from app.views.inspector.inside_section import StepInternalsSection
    from app.views.inspector.what_if import WhatIfCard, WhatIfContent
    from core.events import TokenChosen


class TokenPage(QFrame):
    """Says what it is told. `internalsCreated(InsidePart)`: there is one now; `runWhatIfWanted`: go on from what is supposed;
    `backWanted`: set what the run had."""

    internalsCreated = Signal(object)
    runWhatIfWanted = Signal()
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
        self.bars, self.comparison_bars = BarList(theme, tr("Alternatives")), BarList(theme, tr("Second model"))
        self.bars.setObjectName("alternatives")
        self.layer_bars = BarList(theme, tr("Layers"))
        self.candidates = InspectorSection(tr("Alternatives"), self.bars, "row.alternatives", self)
        self.branch = BranchBar(self)
        self.comparison = InspectorSection(tr("Second model"), self.comparison_bars, "divergence", self)
        self.layers = InspectorSection(tr("Layers"), self.layer_bars, "row.layers", self)
        self.funnel = FunnelSection(theme, self)
        self.figures = InspectorSection(tr("This step"), self.numbers, "row.entropy row.perplexity row.time", self)
        self._what_if: WhatIfCard | None = None
        """Made when something is supposed for the first time."""
        self._internals: StepInternalsSection | None = None
        """Made with the first token: nobody looks inside before."""
        add_glossary_tooltip(self.facts, "probability rank surprise")
        add_glossary_tooltip(self.numbers, self.figures.term)
        self._build()

    @property
    def _sections(self) -> tuple[InspectorSection | FunnelSection, ...]:
        return self.candidates, self.comparison, self.layers, self.funnel, self.figures

    def _build(self) -> None:
        self._card_layout = QHBoxLayout(self.card)
        self._card_layout.addWidget(self.sentence)
        column = self._column = QVBoxLayout(self)
        above, below = (self.heading, self.title, self.facts), (self.card, self.candidates, self.branch)
        for widget in (*above, *below, *self._sections[1:]):
            column.addWidget(widget)
        column.insertSpacing(len(above), 6)
        column.addStretch(1)
        self.bars.rowPicked.connect(self.branch.select_alternative)
        self.branch.picked.connect(self.bars.mark_row)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._column.setSpacing(theme.px(4))
        self._card_layout.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        # Three lines, so that what is below does not move with every token.
        self.sentence.set_min_text_height(theme.px(17) * 3)
        for block in (self.heading, self.title, self.facts, self.numbers):
            block.refit()
        late = [part for part in (self._internals, self._what_if) if part is not None]
        for part in (self.bars, self.comparison_bars, self.layer_bars, self.branch, *self._sections, *late):
            part.set_theme(theme)
        for section in self._sections:
            section.setContentsMargins(0, theme.px(14), 0, 0)

    def set_scroll_bar_width(self, width: int) -> None:
        """Have the right margin narrower by so many pixels, which a scroll bar has taken."""
        self._column.setContentsMargins(page_margins(self._theme, width))

    def show_token(
        self, run: Run, token: TokenChosen, what_if: WhatIfContent | None, forbidden: frozenset[int] = frozenset()
    ) -> None:
        """Speak of a token of the run: its step as it was, or as it is `what_if` to be; `forbidden`: ids that the
        grammar allows no branch to go on with."""
        self.title.set_text(token_text(token.piece, token.is_special))
        self.facts.set_text(inspector_rows.token_facts(token, run.started.vocabulary if run.started else 0))
        self.sentence.set_text(inspector_rows.with_bold_figures(explain_token(token)))
        self._show_what_if(what_if)
        found = what_if.replay if what_if is not None else None
        shown = found.after if found is not None else token
        show_alternatives(self.candidates, self.bars, shown)
        self.branch.set_token(token, branch_unsupported_reason(run), forbidden)
        show_comparison_model(self.comparison, self.comparison_bars, run, token)
        show_layer_choice(self.layers, self.layer_bars, shown)
        self._show_internals(token)
        self.funnel.show_step(
            run, shown, inspector_rows.funnel_stages(shown, found.before if found is not None else None)
        )
        self.numbers.set_text(inspector_rows.figures_table(inspector_rows.step_figures(token)))
        self.figures.show()
        self.activate_layout()

    def activate_layout(self) -> None:
        """Give every part its place at once, so that no half-arranged state is ever painted."""
        self._card_layout.activate()
        for section in self._sections:
            section.activate_layout()
        self._column.activate()

    def _show_what_if(self, what_if: WhatIfContent | None) -> None:
        if what_if is None:
            if self._what_if is not None:
                self._what_if.hide()
            return
        if self._what_if is None:
            self._what_if = self._make_what_if()
        self._what_if.show_content(what_if)
        self._what_if.show()

    def _make_what_if(self) -> WhatIfCard:
        from app.views.inspector.what_if import WhatIfCard

        card = WhatIfCard(self)
        card.set_theme(self._theme)
        card.backWanted.connect(self.backWanted)
        card.runWanted.connect(self.runWhatIfWanted)
        place = self._column.indexOf(self.candidates)
        self._column.insertWidget(place, card)
        self._column.insertSpacing(place, 4)
        return card

    def _show_internals(self, token: TokenChosen) -> None:
        if self._internals is None:
            from app.views.inspector.inside_section import StepInternalsSection

            self._internals = StepInternalsSection(self)
            self._internals.set_theme(self._theme)
            self._column.insertWidget(self._column.indexOf(self.figures), self._internals)
            self.internalsCreated.emit(self._internals.part)
        self._internals.part.set_token(token)
        reason = tr("Its engine shows nothing of what happens inside the model.") if is_remote_token(token) else ""
        self._internals.part.set_unsupported(reason)
        self._internals.show()
