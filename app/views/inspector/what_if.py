"""What if: a card that says what would be otherwise at the step, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.state.what_if import told
from app.state.worker_messages import MemoryEstimate, PrefixNews, StepReplayRequest
from app.theme.theme import Theme
from app.views.inspector import inspector_rows
from app.views.shared.glossary_link import explain
from app.widgets.accessibility import announce
from app.widgets.flow_layout import FlowLayout
from app.widgets.text_block import TextBlock
from core import Sentence, explain_what_if
from resources.language import sentences, tr

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
    found: WhatIf | None = None
    trouble: str = ""

    @classmethod
    def of(cls, asked: StepReplayRequest, answer: Answer) -> WhatIfContent:
        """An answer of the worker."""
        about = cls(asked.step, asked.sequence, told(asked))
        if answer.error is not None:
            return about._replace(trouble=sentences(answer.error.cause, answer.error.remedy))
        return about._replace(
            found=None if isinstance(answer.result, PrefixNews | MemoryEstimate | bool) else answer.result
        )

    def speaks_of(self, token: TokenChosen) -> bool:
        """Whether that is its step."""
        return (self.step, self.sequence) == (token.step, token.sequence)

    @property
    def sentence(self) -> Sentence:
        """What would be otherwise, or why nobody knows."""
        if self.found is None:
            return Sentence(self.trouble)
        return explain_what_if(self.found.before, self.found.after, self.found.is_decided)


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
        explain(self._heading, "row.what_if")
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

    def tell(self, supposed: WhatIfContent) -> None:
        """Say what came of it."""
        sentence = supposed.sentence
        self._heading.set_text(tr("What if").upper())
        self._changes.set_text(supposed.changes)
        self._sentence.set_text(inspector_rows.emphasized(sentence))
        self.run.setEnabled(supposed.found is not None)
        self._column.activate()
        announce(self, tr("What if: {changes}. {sentence}").format(changes=supposed.changes, sentence=sentence))
