"""Prefix cache files: save what a run has read, and load it later."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.messages import SETUP, Messages
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.queries.prefix_file import PrefixQuery, PrefixResult
from decodescope.app.session.session import Session
from decodescope.app.state.prompt_reuse import estimate_reuse
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.storage.settings import ComputeSection
from decodescope.core import cut_short, words
from decodescope.resources.language import tr, trn


class ReuseMarks(QObject):
    """Updates the marks once per event loop turn in which something changed."""

    def __init__(
        self, panel: PromptPanel, session: Session, loading: ModelLoadController, compute: ComputeSection
    ) -> None:
        super().__init__(panel)
        self._panel, self._session, self._loading, self._compute = panel, session, loading, compute
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.update_marks)
        for signal in (panel.edited, session.runStarted, session.runShown, session.finished):
            signal.connect(self._schedule)

    @Slot()
    def _schedule(self) -> None:
        self._timer.start(0)

    @Slot()
    def update_marks(self) -> None:
        """Compare the prompt with that of the shown run."""
        run, panel = self._session.run, self._panel
        keeps = self._compute.prefix_budget > 0 and run is not None and run.request.prefix_budget > 0
        is_same_model = run is not None and run.request.load == self._loading.request()
        if panel.is_chat or not keeps or not is_same_model:
            panel.show_reuse(None, "")
            return
        reuse = estimate_reuse(run, panel.editor.toPlainText())
        caption = (
            tr("{tokens} reused from the cache").format(tokens=words.count(reuse.tokens, "token")) if reuse else ""
        )
        panel.show_reuse(reuse.characters if reuse else None, caption)


USE = "usePrefix"
_MAX_EXCERPT = 60
"""Maximum characters of a prefix shown in a message."""


class PrefixController(QObject):
    """Saves and loads prefix files and shows the result. `textRequested(text)`: put the loaded text into the prompt."""

    textRequested = Signal(str)

    def __init__(
        self, session: Session, loading: ModelLoadController, messages: Messages, compute: ComputeSection
    ) -> None:
        super().__init__(messages)
        self._session, self._loading, self._messages, self._compute = session, loading, messages, compute
        self._text = ""
        session.answered.connect(self._on_answer)
        messages.noticeAction.connect(self._on_action)

    @Slot(str)
    def save(self, path: str) -> None:
        """Save the tokens of the shown run to a file."""
        run = self._session.run
        if run is None or run.started is None:
            self._show_error(tr("There is no run yet, so there is no prefix to save."), tr("Run something first."))
            return
        ids = (*(token.id for token in run.before), *(token.id for token in run.tokens))
        self._send(PrefixQuery(path, self._compute.prefix_budget, ids, load=run.request.load))

    @Slot(str)
    def load(self, path: str) -> None:
        """Load a prefix file for the selected model."""
        request = self._loading.request()
        if not request.model:
            self._show_error(
                tr("No model is selected, and a prefix belongs to one model."), tr("Select the model that created it.")
            )
            return
        self._send(PrefixQuery(path, self._compute.prefix_budget, load=request))

    def _send(self, query: PrefixQuery) -> None:
        self._messages.dismiss()
        self._session.request(query)

    def _show_error(self, cause: str, remedy: str) -> None:
        self._messages.show_setup_error(tr("This prefix cannot be used"), cause, remedy)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if not isinstance(answer.query, PrefixQuery):
            return
        if isinstance(answer.result, PrefixResult):
            self._show_result(answer.result, loaded=answer.query.ids is None)
        elif answer.error is not None:
            self._messages.show_error(_about_prefix(answer.error))

    def _show_result(self, result: PrefixResult, loaded: bool) -> None:
        size = tr("{tokens} ({size})").format(tokens=words.count(result.tokens, "token"), size=words.size(result.bytes))
        name = Path(result.path).name
        if not loaded:
            self._messages.show_notice(
                trn("{size} saved to {name}.", "{size} saved to {name}.", result.tokens).format(size=size, name=name),
                tr("Prefix saved"),
            )
            return
        self._text = result.text
        begins = f" ({_shortened(result.text)})" if result.text else ""
        text = tr(
            "{size} from {name}. Runs with the “Dynamic” cache whose prompt starts with this text{begins} reuse it."
        ).format(size=size, name=name, begins=begins)
        use = [(USE, tr("Insert its text into the prompt"))] if result.text else []
        self._messages.show_notice(text, tr("Prefix loaded"), use)

    @Slot(str)
    def _on_action(self, action: str) -> None:
        if action == USE:
            self.textRequested.emit(self._text)


def _about_prefix(error: ErrorReport) -> ErrorReport:
    """Adapt the error: offer no retry, and do not blame the selected cache."""
    title = tr("This prefix cannot be used") if error.kind == "CacheError" else error.title
    return error._replace(kind=SETUP, title=title)


def _shortened(text: str) -> str:
    return f"“{cut_short(' '.join(text.split()), _MAX_EXCERPT + 1)}”"
