"""What if: a card that says what would be otherwise at the step, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.state.setting_changes import changes_text
from app.state.worker_messages import MemoryEstimate, PrefixResult, StepReplayRequest
from app.theme.theme import Theme
from app.views.inspector import inspector_rows
from app.views.shared.glossary_tooltip import add_glossary_tooltip
from app.widgets.accessibility import announce
from app.widgets.flow_layout import FlowLayout
from app.widgets.labels import TextBlock
from core import Sentence, explain_what_if
from resources.language import join_sentences, tr

if TYPE_CHECKING:
    from app.session.mailbox import Answer
    from core import WhatIf
    from core.events import TokenChosen


class WhatIfContent(NamedTuple):
    """What came of a question: the step both ways, or why it cannot be told."""

    step: int
    sequence: int
    changes: str
    """What is set otherwise."""
    replay: WhatIf | None = None
    error: str = ""

    @classmethod
    def from_answer(cls, request: StepReplayRequest, answer: Answer) -> WhatIfContent:
        """An answer of the worker."""
        about = cls(request.step, request.sequence, changes_text(request))
        if answer.error is not None:
            return about._replace(error=join_sentences(answer.error.cause, answer.error.remedy))
        return about._replace(
            replay=None if isinstance(answer.result, PrefixResult | MemoryEstimate | bool) else answer.result
        )

    def is_about(self, token: TokenChosen) -> bool:
        """Whether that is its step."""
        return (self.step, self.sequence) == (token.step, token.sequence)

    @property
    def sentence(self) -> Sentence:
        """What would be otherwise, or why nobody knows."""
        if self.replay is None:
            return Sentence(self.error)
        return explain_what_if(self.replay.before, self.replay.after, self.replay.is_decided)


class WhatIfCard(QFrame):
    """`runWanted`: go on from here so; `backWanted`: set what the run had."""

    runWanted = Signal()
    backWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("whatIf")
        self.setProperty("role", "supposed")
        self._heading = TextBlock(self, "heading")
        self._changes, self._sentence = TextBlock(self, "muted"), TextBlock(self, rich=True)
        self.run, self.back = QPushButton(tr("Run it so"), self), QPushButton(tr("As it was"), self)
        for button, name in ((self.run, "whatIfRun"), (self.back, "whatIfBack")):
            button.setObjectName(name)
        self.run.setToolTip(tr("A new run: the text up to here, then what is set now"))
        self.back.setToolTip(tr("Set what the run had"))
        self.run.clicked.connect(self.runWanted)
        self.back.clicked.connect(self.backWanted)
        add_glossary_tooltip(self._heading, "row.what_if")
        self._column, self._buttons = QVBoxLayout(self), FlowLayout()
        for block in (self._heading, self._changes, self._sentence):
            self._column.addWidget(block)
        for button in (self.run, self.back):
            self._buttons.addWidget(button)
        self._column.addLayout(self._buttons)

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's spacing."""
        self._column.setContentsMargins(theme.px(13), theme.px(9), theme.px(13), theme.px(11))
        self._column.setSpacing(theme.px(5))
        for block in (self._heading, self._changes, self._sentence):
            block.refit()

    def show_content(self, content: WhatIfContent) -> None:
        """Say what came of it."""
        sentence = content.sentence
        self._heading.set_text(tr("What if").upper())
        self._changes.set_text(content.changes)
        self._sentence.set_text(inspector_rows.with_bold_figures(sentence))
        self.run.setEnabled(content.replay is not None)
        self._column.activate()
        announce(self, tr("What if: {changes}. {sentence}").format(changes=content.changes, sentence=sentence))
