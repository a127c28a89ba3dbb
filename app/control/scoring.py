"""Scoring: rates the prompt or the shown run token by token, optionally with a comparison model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMenu

from decodescope.app.control.model_list import ENGINE, ModelList
from decodescope.app.control.requests import RequestBuilder
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.session import Session
from decodescope.app.state.branching import make_score_request, strip_for_scoring
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core import ModelEntry, catalog
from decodescope.resources.language import mark, tr


class ComparisonModelOption(NamedTuple):
    """A possible comparison model; `reason`: why it cannot be used, judged by its files alone."""

    name: str
    title: str
    reason: str


def comparison_options(models: ModelList, name: str) -> Sequence[ComparisonModelOption]:
    """Return every other local model, usable ones first."""
    first = models.get(name)
    others = [entry for entry in models.entries if entry.name != name and entry.source != ENGINE]
    options = [
        ComparisonModelOption(entry.name, entry.title, _unsupported_reason(entry, first))
        for entry in others
        if first is not None
    ]
    return sorted(options, key=lambda second: bool(second.reason))


def _unsupported_reason(second: ModelEntry, first: ModelEntry) -> str:
    """Return why `second` cannot be compared; the core checks again when the text is scored."""
    if second.problem:
        return second.problem
    if second.encoder_decoder != first.encoder_decoder:
        return tr("One of the two is an encoder–decoder model.")
    if not catalog.same_tokenizer(second, first):
        return tr("It has a different tokenizer, so their tokens are not comparable.")
    return ""


_EMPTY = (mark("The prompt is empty."), mark("Enter or paste a text."))
_NO_MODEL = (mark("No model is selected."), mark("Select one."))


class ScoreController(QObject):
    """Handles the score button and its menu, which is rebuilt on opening. `startRequested(RunRequest)`: start this run;
    `rejected(title, cause, remedy)`: nothing can be scored.
    """

    startRequested = Signal(object)
    rejected = Signal(str, str, str)

    def __init__(self, panel: PromptPanel, session: Session, requests: RequestBuilder, models: ModelList) -> None:
        super().__init__(panel)
        self._session, self._requests, self._models = session, requests, models
        self._menu = panel.score_button.menu()
        panel.score_button.clicked.connect(self.score_prompt)
        self._menu.aboutToShow.connect(self.fill_menu)

    @Slot()
    def score_prompt(self) -> None:
        """Score the text in the prompt."""
        self._score_prompt("")

    @Slot()
    def score_run(self) -> None:
        """Score the shown run, including its prompt."""
        self._score_run("")

    @Slot()
    def compare_with_float32(self) -> None:
        """Score the prompt with the current weights and, for comparison, the model in float32."""
        self._score_prompt(self._requests.current_request().model)

    @Slot()
    def fill_menu(self) -> None:
        """Fill the menu with what can be scored and the comparison models."""
        menu, run = self._menu, self._session.run
        for submenu in menu.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly):
            submenu.deleteLater()  # clear() does not delete submenus
        menu.clear()
        menu.addAction(tr("Score this text"), self.score_prompt)
        has_tokens = run is not None and bool(run.tokens)
        menu.addAction(tr("Score the shown run (prompt and answer)"), self.score_run).setEnabled(has_tokens)
        name = self._requests.current_request().model
        for title, score, model_name in (
            (tr("Score this text with two models"), self._score_prompt, name),
            (tr("Score the shown run with two models"), self._score_run, run.request.model if run is not None else ""),
        ):
            submenu = menu.addMenu(caption(title))
            submenu.setToolTipsVisible(True)
            for second in comparison_options(self._models, model_name):
                action = submenu.addAction(caption(second.title), partial(score, second.name))
                action.setEnabled(not second.reason)
                action.setToolTip(tooltip(second.reason))
            submenu.setEnabled(bool(submenu.actions()) and (score == self._score_prompt or has_tokens))

    def _score_prompt(self, second: str) -> None:
        request = strip_for_scoring(self._requests.current_request())
        if request.model and request.prompt:
            self.startRequested.emit(replace(request, second=second))
        else:
            cause, remedy = _EMPTY if request.model else _NO_MODEL
            self.rejected.emit(tr("Nothing to score yet"), tr(cause), tr(remedy))

    def _score_run(self, second: str) -> None:
        run = self._session.run
        if run is not None and run.tokens:
            self.startRequested.emit(make_score_request(run, second))
