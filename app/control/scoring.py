"""Scores texts instead of writing any: the prompt, or the text of the run that is shown; with a second model beside."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMenu

from app.control.comparison_models import seconds_for
from app.control.model_list import ModelList
from app.control.requests import RequestBuilder
from app.panels.prompt import PromptPanel
from app.session.session import Session
from app.state.branching import score_of, scored
from app.widgets.plain_text import caption, tooltip
from resources.language import mark, tr

_EMPTY = (mark("The prompt is empty."), mark("Write or paste a text into it."))
_NO_MODEL = (mark("No model is chosen."), mark("Choose one."))


class ScoreController(QObject):
    """Does what the button and its menu say; the menu is made anew whenever it opens. `startWanted(RunRequest)`: that
    is to be run; `refused(title, cause, remedy)`: why nothing can be."""

    startWanted = Signal(object)
    refused = Signal(str, str, str)

    def __init__(self, panel: PromptPanel, session: Session, requests: RequestBuilder, models: ModelList) -> None:
        super().__init__(panel)
        self._session, self._requests, self._models = session, requests, models
        self._menu = panel.score.menu()
        panel.score.clicked.connect(self.score_prompt)
        self._menu.aboutToShow.connect(self.fill)

    @Slot()
    def score_prompt(self) -> None:
        """Score the text that stands in the prompt."""
        self._score_prompt("")

    @Slot()
    def score_run(self) -> None:
        """Score the text of the run that is shown, its prompt too."""
        self._score_run("")

    @Slot()
    def measure_weights(self) -> None:
        """Score the prompt with the weights as they are kept, and with the model in float32 beside them."""
        self._score_prompt(self._requests.as_set().model)

    @Slot()
    def fill(self) -> None:
        """What can be scored now, and by whom."""
        menu, run = self._menu, self._session.run
        for below in menu.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly):
            below.deleteLater()  # clearing a menu leaves the menus in it
        menu.clear()
        menu.addAction(tr("Score this text"), self.score_prompt)
        there = run is not None and bool(run.tokens)
        menu.addAction(tr("Score the shown run, prompt and answer"), self.score_run).setEnabled(there)
        name = self._requests.as_set().model
        for title, score, of in (
            (tr("Score this text by two models"), self._score_prompt, name),
            (tr("Score the shown run by two models"), self._score_run, run.request.model if run is not None else ""),
        ):
            below = menu.addMenu(caption(title))
            below.setToolTipsVisible(True)
            for second in seconds_for(self._models, of):
                action = below.addAction(caption(second.title), partial(score, second.name))
                action.setEnabled(not second.reason)
                action.setToolTip(tooltip(second.reason))
            below.setEnabled(bool(below.actions()) and (score == self._score_prompt or there))

    def _score_prompt(self, second: str) -> None:
        request = scored(self._requests.as_set())
        if request.model and request.prompt:
            self.startWanted.emit(replace(request, second=second))
        else:
            cause, remedy = _EMPTY if request.model else _NO_MODEL
            self.refused.emit(tr("There is nothing to score yet"), tr(cause), tr(remedy))

    def _score_run(self, second: str) -> None:
        run = self._session.run
        if run is not None and run.tokens:
            self.startWanted.emit(score_of(run, second))
