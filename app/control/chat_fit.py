"""Says before a message is sent that the chat no longer fits the context, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Slot

from decodescope.app.control.chat import ChatController
from decodescope.app.control.requests import RequestBuilder
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.conversation import RESTART
from decodescope.app.state.worker_messages import RunRequest, is_turns
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels

DELAY_MS = 400
"""Delay after the last change."""
COUNT_FROM = 0.6
"""Estimated fraction of the context from which tokens are counted exactly."""


class ChatFit(NamedTuple):
    """The fit of a chat to the context of its model."""

    tokens: int
    """Tokens of all messages."""
    kept_tokens: int
    """Tokens of the messages that are sent."""
    room: int
    """Tokens reserved for the answer."""
    context: int
    dropped: int
    """Number of messages that are left out."""

    @property
    def is_too_long(self) -> bool:
        """Whether even the new messages alone do not fit."""
        return self.kept_tokens >= self.context


@plain(frozen=True)
class ChatFitQuery(Query):
    """Query for the fit of a chat; None if its model has no limit, is not loaded, or runs on another machine."""

    replaces_earlier = True
    yields_to_runs = True

    request: RunRequest

    def run(self, models: LocalModels, report: Report) -> ChatFit | None:
        """Count with the tokenizer and the chat template of the loaded model. Raises DecodescopeError."""
        from decodescope.app.session.worker_jobs import fit_chat, has_bounded_context

        model = models.find(self.load)
        if model is None or model.context is None or not has_bounded_context(model, self.request):
            return None
        fitted = fit_chat(model, self.request)
        dropped = len(self.request.prompt) - len(fitted.kept)
        return ChatFit(fitted.tokens, fitted.kept_tokens, fitted.room, model.context, dropped)


class ChatFitController(QObject):
    """Requests the count while a message is written, and shows the warning above the editor."""

    def __init__(self, session: Session, chat: ChatController, prompt: PromptPanel, requests: RequestBuilder) -> None:
        super().__init__(chat)
        self._session, self._chat, self._prompt, self._requests = session, chat, prompt, requests
        self._query: ChatFitQuery | None = None
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self.check)
        for signal in (prompt.edited, session.finished, session.modelReady, chat.conversationReplaced):
            signal.connect(self.schedule)
        session.answered.connect(self._on_answer)

    @Slot()
    def schedule(self) -> None:
        """Count shortly after the last change."""
        if self._prompt.is_chat:
            self._timer.start()

    @Slot()
    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    @Slot()
    def check(self) -> None:
        """Request the count, unless the chat is far from filling the context."""
        self._query = None
        talk, info = self._chat.conversation, self._session.model
        if self._session.busy or not self._prompt.is_chat:
            return
        messages = self._chat.prompt()
        used = talk.used_tokens + talk.estimate_tokens(self._prompt.message)
        if (
            info is None
            or not info.context
            or not is_turns(messages)
            or not messages
            or used < COUNT_FROM * info.context
        ):
            self._chat.composer.show_warning("")
            return
        request = self._requests.request(seed=0)
        self._query = ChatFitQuery(request, load=request.load)
        self._session.request(self._query)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if self._query is None or answer.query is not self._query:
            return
        fit = answer.result
        restarts = self._chat.conversation.when_full == RESTART
        self._chat.composer.show_warning(_warning(fit, restarts) if isinstance(fit, ChatFit) else "")


def _warning(fit: ChatFit, restarts: bool) -> str:
    """Return what will happen because the context is full, and what would help; empty if all fits."""
    if fit.is_too_long:
        return tr(
            "The message is too long: it needs {tokens:,} tokens, and the model's context has {context:,}. Shorten "
            "it, or choose a model with a longer context or the cache “Sink”."
        ).format(tokens=fit.kept_tokens, context=fit.context)
    if not fit.dropped:
        return ""
    what = (
        tr("all earlier turns will be left out")
        if restarts
        else trn("the oldest turn will be left out", "the {n:,} oldest turns will be left out", fit.dropped)
    ).format(n=fit.dropped)
    return tr(
        "The context is full: {tokens:,} tokens with room for the answer, of {context:,}, so {what}. Fewer new "
        "tokens, a model with a longer context or a new chat would help."
    ).format(tokens=fit.tokens + fit.room, context=fit.context, what=what)
