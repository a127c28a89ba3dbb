"""The inspector's page on one token: a sentence on why it was chosen, then the candidates and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.branching import branch_unsupported_reason, forbidden_reason
from decodescope.app.state.layer_queries import has_adapters
from decodescope.app.state.setting_changes import move_stage, order_setting
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector import inspector_rows
from decodescope.app.views.inspector.inspector_section import (
    InspectorSection,
    page_margins,
    show_alternatives,
    show_comparison_model,
    show_layer_choice,
)
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.views.text.token_wording import is_remote_token, token_text
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.funnel import FunnelStage, FunnelWidget
from decodescope.app.widgets.labels import TextBlock
from decodescope.app.widgets.plain_text import tooltip
from decodescope.core import explain_token, words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.state.run import Run
    from decodescope.app.views.inspector.stage_pictures import StagePictures
    from decodescope.app.views.inspector.step_internals import StepInternalsSection
    from decodescope.app.views.inspector.what_if_card import WhatIfCard, WhatIfContent
    from decodescope.core.events import Alternative, TokenChosen


class BranchBar(Themed, QWidget):
    """The controls that continue the run with another token or text. `branch_requested(what)` continues the run with
    that token id or text; `picked(id)`: an alternative has been selected, in any way.
    """

    branch_requested = Signal(object)
    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._alternatives: Sequence[Alternative] = ()
        self._forbidden = frozenset[int]()
        self._index = 0
        self.button = set_up(QPushButton(self), name="branchButton", clicked=self._on_confirmed)
        self.field = set_up(QLineEdit(self), name="branchField")
        self.field.setPlaceholderText(tr("or type other words"))
        self.field.setAccessibleName(tr("Other text at this position"))
        self.field.setToolTip(tr("Other text at this position; ↑ and ↓ go through the alternatives"))
        self.field.setMaxLength(1000)
        self.field.textChanged.connect(self._update_button)
        self.field.returnPressed.connect(self._on_confirmed)
        self.field.installEventFilter(self)
        self._column = arrange(QVBoxLayout(self), self.button, self.field)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(6))
        self._column.setContentsMargins(0, theme.px(8), 0, 0)
        self._update_button()

    def set_token(self, token: TokenChosen, reason: str, forbidden: frozenset[int] = frozenset()) -> None:
        """Offer the alternatives of a token. `reason`: why it cannot be replaced (empty if it can); `forbidden`:
        ids that the grammar forbids at this position.
        """
        self._alternatives = [item for item in token.alternatives if item.id != token.id]
        self._forbidden = forbidden
        self._index = next((place for place, item in enumerate(self._alternatives) if item.id not in forbidden), 0)
        self.field.clear()
        self.setEnabled(not reason)
        self.setToolTip(tooltip(reason))
        self._update_button()

    @property
    def choice(self) -> int | str | None:
        """The typed text, or the id of the selected alternative; None for a forbidden one."""
        if self.field.text().strip():
            return self.field.text()
        marked = self._marked
        return None if marked is None or marked.id in self._forbidden else marked.id

    @property
    def _marked(self) -> Alternative | None:
        """The selected alternative, unless text is typed."""
        return self._alternatives[self._index] if self._alternatives and not self.field.text().strip() else None

    @Slot(int)
    def select_alternative(self, token: int) -> None:
        """Select that alternative."""
        places = [place for place, item in enumerate(self._alternatives) if item.id == token]
        if places:
            self._index = places[0]
            self.field.clear()
            self._update_button()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Go through the alternatives with Up and Down."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self._alternatives:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
            if step is not None:
                self.select_alternative(self._alternatives[(self._index + step) % len(self._alternatives)].id)
                return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the button's title to its width."""
        super().resizeEvent(event)
        self._update_button()

    @Slot()
    def _update_button(self) -> None:
        """Update the button and the selected row."""
        marked, is_possible = self._marked, self.choice is not None
        self.button.setEnabled(is_possible)
        self.button.setText(self._title())
        self.button.setAccessibleName(self._description())
        explanation = tr("Start a new run: the text up to here, then this, then generated with the current settings")
        self.button.setToolTip(tooltip(explanation if is_possible or marked is None else self._description()))
        self.picked.emit(marked.id if marked is not None else -1)

    def _description(self) -> str:
        """Return the full description of the button, or why it is disabled."""
        if self.choice is not None:
            return tr("Continue with {name} instead").format(name=self._name())
        return forbidden_reason(self._marked.text, self._marked.special) if self._marked is not None else tr("Continue")

    def _name(self) -> str:
        marked = self._marked
        if marked is not None:
            return words.quote(marked.text, marked.special)
        return words.quote(self.field.text(), False) if self.field.text().strip() else ""

    def _title(self) -> str:
        """Return the longest title that fits the button."""
        name, metrics = self._name(), self.button.fontMetrics()
        if not name:
            return tr("Continue with other text")
        room = self.button.width() - 4 * metrics.averageCharWidth()
        titles = [self._description()]
        if self.choice is not None:
            titles += [tr("Continue with {name}").format(name=name), tr("With {name}").format(name=name)]
        fitting = (title for title in titles if metrics.horizontalAdvance(title) <= room)
        return next(fitting, metrics.elidedText(titles[-1], Qt.TextElideMode.ElideRight, max(room, 40)))

    @Slot()
    def _on_confirmed(self) -> None:
        if (choice := self.choice) is not None:
            self.branch_requested.emit(choice)


class FunnelSection(Themed, QWidget):
    """The funnel of the step's stages, which can be reordered. `orderWanted(names)`: run the stages in this order;
    None: in the default order.
    """

    orderWanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.stages = set_up(FunnelWidget(theme), name="funnel")
        self._section = InspectorSection(tr("Funnel"), self.stages, "row.funnel", self)
        self._pictures: StagePictures | None = None
        """Created with the first step that has stage details."""
        self._default_order = QPushButton(tr("Default order"), self)
        self._default_order.setObjectName("defaultOrder")
        self._default_order.setProperty("role", "quiet")
        self._default_order.setToolTip(tr("Restore the order used by transformers"))
        self._column = arrange(
            QVBoxLayout(self), self._section, (self._default_order, 0, Qt.AlignmentFlag.AlignLeft), margins=0
        )
        self._default_order.clicked.connect(lambda: self.orderWanted.emit(None))
        self.stages.stageMoved.connect(self._on_moved)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(4))

    def show_step(self, run: Run, token: TokenChosen, stages: Sequence[FunnelStage]) -> None:
        """Show what each stage of a step left; hide the part if there were no stages."""
        self.stages.set_stages(stages)
        is_usual = order_setting(self.stages.movable_stages) is None
        remark = "" if is_usual else tr("Order of the stages changed.")
        if run.started is not None and run.started.engine:
            remark = tr(
                "{engine} applies its settings on its own server and does not report the individual stages."
            ).format(engine=run.started.engine)
        self._section.set_title(tr("Funnel"), remark)
        self.stages.setVisible(bool(stages))
        self._default_order.setVisible(not is_usual)
        self._show_pictures(run, token)
        self.setVisible(bool(stages) or (run.started is not None and bool(run.started.engine)))

    def activate_layout(self) -> None:
        """Lay out all parts at once."""
        if self._pictures is not None:
            self._pictures.activate_layout()
        self._section.activate_layout()
        self._column.activate()

    def _show_pictures(self, run: Run, token: TokenChosen) -> None:
        """Show the pictures of stages that have details."""
        has_details = any(stage.detail is not None for stage in token.funnel)
        if has_details and self._pictures is None:
            from decodescope.app.views.inspector.stage_pictures import StagePictures

            self._pictures = StagePictures(self._theme, self)
            self._column.insertWidget(1, self._pictures)
        if self._pictures is not None:
            self._pictures.setVisible(has_details)
            if has_details:
                self._pictures.show_step(run, token)

    @Slot(str, int)
    def _on_moved(self, stage: str, index: int) -> None:
        """Request the new order after a stage was dragged."""
        self.orderWanted.emit(order_setting(move_stage(self.stages.movable_stages, stage, index)))


class TokenPage(Themed, QFrame):
    """Show a given token. Signals: `internalsCreated(StepInternalsPanel)` when the internals panel is created;
    `runWhatIfWanted` to continue from the what-if step; `backWanted` to restore the run's settings.
    """

    internalsCreated = Signal(object)
    runWhatIfWanted = Signal()
    backWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme = self._theme
        self.setProperty("role", "panel")
        self.heading, self.title = TextBlock(self, "heading"), TextBlock(self, "title")
        self.facts, self.numbers = TextBlock(self, "muted"), TextBlock(self, "muted", rich=True)
        self.card = set_up(QFrame(self), role="card", name="reason")
        self.sentence = TextBlock(self.card, rich=True)
        self.bars, self.comparison_bars = BarList(theme, tr("Alternatives")), BarList(theme, tr("Comparison model"))
        self.bars.setObjectName("alternatives")
        self.layer_bars = BarList(theme, tr("Layers"))
        self.candidates = InspectorSection(tr("Alternatives"), self.bars, "row.alternatives", self)
        self.branch = BranchBar(self)
        self.comparison = InspectorSection(tr("Comparison model"), self.comparison_bars, "divergence", self)
        self.layers = InspectorSection(tr("Layers"), self.layer_bars, "row.layers", self)
        self.funnel = FunnelSection(theme, self)
        self.figures = InspectorSection(tr("This step"), self.numbers, "row.entropy row.perplexity row.time", self)
        self._what_if: WhatIfCard | None = None
        """Created when a what-if result is shown for the first time."""
        self._internals: StepInternalsSection | None = None
        """Created with the first token, because it is not needed before."""
        add_glossary_tooltip(self.facts, "probability rank surprise")
        add_glossary_tooltip(self.numbers, self.figures.term)
        self._build()

    @property
    def _sections(self) -> tuple[InspectorSection | FunnelSection, ...]:
        return self.candidates, self.comparison, self.layers, self.funnel, self.figures

    def _build(self) -> None:
        self._card_layout = arrange(QHBoxLayout(self.card), self.sentence)
        column = self._column = QVBoxLayout(self)
        above, below = (self.heading, self.title, self.facts), (self.card, self.candidates, self.branch)
        arrange(column, *above, *below, *self._sections[1:])
        column.insertSpacing(len(above), 6)
        column.addStretch(1)
        self.bars.rowPicked.connect(self.branch.select_alternative)
        self.branch.picked.connect(self.bars.mark_row)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(4))
        self._card_layout.setContentsMargins(theme.px(13), theme.px(11), theme.px(13), theme.px(11))
        self.keep_height(False)
        for block in (self.heading, self.title, self.facts, self.sentence, self.numbers):
            block.refit()
        for section in self._sections:
            section.setContentsMargins(0, theme.px(14), 0, 0)

    def keep_height(self, is_kept: bool) -> None:
        """Keep the height of the sentence's card at least as it is, so that the parts below do not move with every
        token of a growing text; otherwise fit it to the sentence. Most sentences have two lines.
        """
        two_lines = 2 * QFontMetrics(self._theme.font(13)).lineSpacing()
        self.sentence.set_min_text_height(max(two_lines, self.sentence.height() if is_kept else 0))

    def set_scroll_bar_width(self, width: int) -> None:
        """Reduce the right margin by the pixels that the scroll bar takes."""
        self._column.setContentsMargins(page_margins(self._theme, width))

    def show_token(
        self, run: Run, token: TokenChosen, what_if: WhatIfContent | None, forbidden: frozenset[int] = frozenset()
    ) -> None:
        """Show a token of the run: its step as recorded, or as in the what-if result `what_if`; `forbidden`: ids that
        the grammar does not allow in a branch.
        """
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
        self._show_internals(run, token)
        self.funnel.show_step(
            run, shown, inspector_rows.funnel_stages(shown, found.before if found is not None else None)
        )
        self.numbers.set_text(inspector_rows.figures_table(inspector_rows.step_figures(token)))
        self.figures.show()
        self.activate_layout()

    def activate_layout(self) -> None:
        """Lay out all parts at once, so that no partial layout is painted."""
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
        from decodescope.app.views.inspector.what_if_card import WhatIfCard

        card = WhatIfCard(self)
        card.set_theme(self._theme)
        card.backWanted.connect(self.backWanted)
        card.runWanted.connect(self.runWhatIfWanted)
        place = self._column.indexOf(self.candidates)
        self._column.insertWidget(place, card)
        self._column.insertSpacing(place, 4)
        return card

    def _show_internals(self, run: Run, token: TokenChosen) -> None:
        if self._internals is None:
            from decodescope.app.views.inspector.step_internals import StepInternalsSection

            self._internals = StepInternalsSection(self)
            self._internals.set_theme(self._theme)
            self._column.insertWidget(self._column.indexOf(self.figures), self._internals)
            self.internalsCreated.emit(self._internals.part)
        self._internals.part.set_adapted(has_adapters(run))
        self._internals.part.set_token(token)
        reason = tr("This engine does not give access to the inside of the model.") if is_remote_token(token) else ""
        self._internals.part.set_unsupported(reason)
        self._internals.show()
