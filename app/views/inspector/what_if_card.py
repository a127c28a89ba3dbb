"""The “What if” card: it shows the changed outcome of a step, and actions on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.setting_changes import changes_text
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector import inspector_rows
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.accessibility import announce
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowLayout
from decodescope.app.widgets.labels import TextBlock
from decodescope.core import Sentence, explain_what_if
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.session.queries.base import Answer
    from decodescope.app.session.queries.step_replay import StepReplayQuery
    from decodescope.core import StepCounterfactual
    from decodescope.core.events import TokenChosen


class WhatIfContent(NamedTuple):
    """The result of a what-if request: the step before and after, or the reason for failure."""

    step: int
    sequence: int
    changes: str
    """Description of the changed settings."""
    replay: StepCounterfactual | None = None
    error: str = ""

    @classmethod
    def from_answer(cls, query: StepReplayQuery, answer: Answer) -> WhatIfContent:
        """Create the content from the worker's answer."""
        error = join_sentences(answer.error.cause, answer.error.remedy) if answer.error is not None else ""
        return cls(query.step, query.sequence, changes_text(query.request, query.changes), answer.result, error)

    def is_about(self, token: TokenChosen) -> bool:
        """Return whether the content is about that token's step."""
        return (self.step, self.sequence) == (token.step, token.sequence)

    @property
    def sentence(self) -> Sentence:
        """The difference in one sentence, or the reason for failure."""
        if self.replay is None:
            return Sentence(self.error)
        return explain_what_if(self.replay.before, self.replay.after, self.replay.is_decided)


class WhatIfCard(Themed, QFrame):
    """The step under other settings, compared with the recorded one. `runWanted` continues from here with the changed
    settings; `backWanted` restores the run's settings.
    """

    runWanted = Signal()
    backWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_up(self, name="whatIf", role="supposed")
        self._heading = TextBlock(self, "heading")
        self._changes, self._sentence = TextBlock(self, "muted"), TextBlock(self, rich=True)
        self.run, self.back = QPushButton(tr("Run with this"), self), QPushButton(tr("Restore"), self)
        for button, name in ((self.run, "whatIfRun"), (self.back, "whatIfBack")):
            button.setObjectName(name)
        self.run.setToolTip(tr("Start a new run: the text up to here, then generated with the current settings"))
        self.back.setToolTip(tr("Restore this run's settings"))
        self.run.clicked.connect(self.runWanted)
        self.back.clicked.connect(self.backWanted)
        add_glossary_tooltip(self._heading, "row.what_if")
        self._column, self._buttons = QVBoxLayout(self), FlowLayout()
        arrange(self._column, self._heading, self._changes, self._sentence)
        arrange(self._buttons, self.run, self.back)
        self._column.addLayout(self._buttons)

    def restyle(self, theme: Theme) -> None:
        self._column.setContentsMargins(theme.px(13), theme.px(9), theme.px(13), theme.px(11))
        self._column.setSpacing(theme.px(5))
        for block in (self._heading, self._changes, self._sentence):
            block.refit()

    def show_content(self, content: WhatIfContent) -> None:
        """Show the what-if result."""
        sentence = content.sentence
        self._heading.set_text(tr("What if").upper())
        self._changes.set_text(content.changes)
        self._sentence.set_text(inspector_rows.with_bold_figures(sentence))
        self.run.setEnabled(content.replay is not None)
        self._column.activate()
        announce(self, tr("What if: {changes}. {sentence}").format(changes=content.changes, sentence=sentence))
