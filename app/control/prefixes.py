"""Prefixes in files: what a run has read is saved, and what was read before the program began is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.control.messages import SETUP
from app.session.worker import Answer
from app.state.figures import human_bytes
from app.state.requests import Errand, ErrorReport, PrefixNews, PrefixRequest
from app.views.base import View

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

USE = "usePrefix"
_LONGEST = 60
"""Characters of a prefix's text that are told."""


class PrefixController(QObject):
    """Obeys `prefixSaveWanted(path)` and `prefixLoadWanted(path)` of the views that have them."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window, self._text = window, ""
        for view in window.centre.views:
            self.connect_view(view)
        window.centre.viewAdded.connect(self.connect_view)
        window.session.answered.connect(self._on_answer)
        window.messages.notices.actionChosen.connect(self._on_action)

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Obey what the reader does in it."""
        view.signals.prefixSaveWanted.connect(self.save)
        view.signals.prefixLoadWanted.connect(self.load)

    @Slot(str)
    def save(self, path: str) -> None:
        """Write what the shown run has read to a file."""
        run = self._window.session.run
        if run is None or run.started is None:
            self._complain("Nothing has been read yet, so there is no prefix to save.", "Run something first.")
            return
        ids = (*(token.id for token in run.prompt), *(token.id for token in run.tokens))
        self._ask(PrefixRequest(path, run.request.loading(), self._budget, ids))

    @Slot(str)
    def load(self, path: str) -> None:
        """Read such a file, for the chosen model."""
        if not self._window.controller.model:
            self._complain("No model is chosen, and a prefix belongs to one.", "Choose the model that made it.")
            return
        self._ask(PrefixRequest(path, self._window.controller.load_request(), self._budget))

    @property
    def _budget(self) -> int:
        return self._window.settings.compute.prefix_budget

    def _ask(self, request: PrefixRequest) -> None:
        self._window.messages.dismiss()
        self._window.session.ask(Errand("prefix", request))

    def _complain(self, cause: str, remedy: str) -> None:
        self._window.messages.show_setup_error("The prefix cannot be used", cause, remedy)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if answer.errand.kind != "prefix":
            return
        if isinstance(answer.result, PrefixNews):
            self._tell(answer.result, loaded=answer.errand.request.ids is None)
        elif answer.error is not None:
            self._window.messages.show_error(_about_prefix(answer.error))

    def _tell(self, news: PrefixNews, loaded: bool) -> None:
        size = f"{news.tokens:,} tokens ({human_bytes(news.bytes)})"
        name = Path(news.path).name
        notices = self._window.messages.notices
        if not loaded:
            notices.show_message("Prefix saved", f"{size} are in {name}.")
            return
        self._text = news.text
        begins = f" ({_shortened(news.text)})" if news.text else ""
        words = f"{size} from {name}. A run on the cache “Dynamic” whose prompt begins with them{begins} starts there."
        notices.show_message("Prefix loaded", words, actions=[(USE, "Put its text into the prompt")] * bool(news.text))

    @Slot(str)
    def _on_action(self, action: str) -> None:
        if action == USE:
            self._window.setup.prompt.set_prompt(self._text)
            self._window.controller.focus_prompt()


def _about_prefix(error: ErrorReport) -> ErrorReport:
    """Trying the same again would not help; and it is not the cache that cannot be used."""
    title = "The prefix cannot be used" if error.kind == "CacheError" else error.title
    return replace(error, kind=SETUP, title=title)


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return f"“{words}”" if len(words) <= _LONGEST else f"“{words[:_LONGEST].rstrip()}…”"
