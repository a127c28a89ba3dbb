"""Counts the prompt's tokens while it is written, and refuses one that the model cannot read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.chat import ChatController
from decodescope.app.control.messages import PROMPT_TOO_LONG, Messages
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.registry_choice import RegistryChoice
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import ErrorReport, Prompt, is_turns
from decodescope.core import caches, words
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import PromptError, PromptTooLongError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels

DELAY_MS = 250
"""Delay after the last key."""
SHORTEN, OTHER_MODEL, ENDLESS_CACHE = "shorten", "other_model", "endless_cache"
"""Names of the offers for a prompt that is too long."""


class TokenCount(NamedTuple):
    """Length of a prompt and of the model's context, in tokens."""

    tokens: int
    context: int | None
    """None for a model without a limit."""


@plain(frozen=True)
class TokenCountQuery(Query):
    """Query for the number of tokens of a prompt, for the loaded model; None if it is another one."""

    replaces_earlier = True

    prompt: Prompt = ""

    def run(self, models: LocalModels, report: Report) -> TokenCount | None:
        """Count without running the model. Raises what `core.encode` raises."""
        from decodescope import core

        model = models.find(self.load)
        if model is None:
            return None
        prompt = self.prompt if isinstance(self.prompt, str) else list(self.prompt)
        return TokenCount(len(core.encode(model, prompt, unbounded=True)) if prompt else 0, model.context)


class PromptLengthController(QObject):
    """Shows the number of tokens beside the prompt. `shortenRequested`, `modelRequested`, `retryRequested`: the offers
    for a prompt that is too long; the last one after a cache was selected that reads texts of any length.
    """

    shortenRequested = Signal()
    modelRequested = Signal()
    retryRequested = Signal()

    def __init__(
        self, session: Session, panel: PromptPanel, chat: ChatController, loading: ModelLoadController,
        cache: RegistryChoice, messages: Messages,
    ) -> None:  # fmt: skip
        super().__init__(panel)
        self._session, self._panel, self._chat, self._loading = session, panel, chat, loading
        self._cache, self._messages = cache, messages
        self._query: TokenCountQuery | None = None
        self._counted: tuple[Prompt, TokenCount] | None = None
        """The prompt that was counted last."""
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._count)
        panel.edited.connect(self.schedule)
        for signal in (session.modelReady, session.finished, cache.changed):
            signal.connect(self.schedule)
        session.answered.connect(self._on_answer)
        messages.offerAccepted.connect(self._on_offer)
        messages.set_offers(PROMPT_TOO_LONG, self.offers)

    @property
    def error(self) -> ErrorReport | None:
        """The reason why the prompt cannot be run; None if it can, or is not counted yet.

        A chat is shortened by leaving out its oldest turns, so that its length alone is no reason.
        """
        prompt = self._chat.prompt()
        if self._counted is None or self._counted[0] != prompt or is_turns(prompt):
            return None
        count = self._counted[1]
        if not self._is_too_long(count):
            return None
        error = PromptTooLongError(count.tokens, count.context or 0)
        return ErrorReport(tr(PromptError.title), error.cause, error.remedy, kind=PROMPT_TOO_LONG)

    def offers(self) -> Sequence[tuple[str, str]]:
        """Return what helps against a prompt that is too long, as (name, label)."""
        cache = self._endless_cache()
        use = [(ENDLESS_CACHE, tr("Use the cache “{cache}”").format(cache=tr(caches.registry[cache].title)))]
        return [
            (SHORTEN, tr("Shorten the prompt")),
            (OTHER_MODEL, tr("Choose another model")),
            *(use if cache else ()),
        ]

    @Slot()
    def schedule(self) -> None:
        """Count shortly after the last change."""
        self._timer.start()

    @Slot()
    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    def _endless_cache(self) -> str:
        """Return the cache that reads prompts of any length; empty if the model does not support one."""
        info = self._session.model
        refused = info.unsupported_caches if info is not None else {}
        return next((name for name, cache in caches.registry.items() if cache.unbounded and name not in refused), "")

    def _is_too_long(self, count: TokenCount) -> bool:
        is_bounded = not caches.registry[self._cache.name].unbounded
        return is_bounded and count.context is not None and count.tokens > count.context

    @Slot()
    def _count(self) -> None:
        self._query = None
        request, info = self._loading.request(), self._session.model
        if self._session.busy:
            return  # counted at the end of the run
        is_chat = self._panel.is_chat  # counted by `ChatFitController`
        if is_chat or info is None or info.name != request.model or info.engine:
            self._show(None)
            return
        self._query = TokenCountQuery(self._chat.prompt(), load=request)
        self._session.request(self._query)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if self._query is None or answer.query is not self._query:
            return
        count = answer.result
        self._counted = (self._query.prompt, count) if isinstance(count, TokenCount) else None
        self._show(count if isinstance(count, TokenCount) else None)

    def _show(self, count: TokenCount | None) -> None:
        if count is None:
            self._panel.show_token_count("", "")
            return
        is_long = self._is_too_long(count)
        self._panel.show_token_count(*_count_texts(count, is_long), is_too_long=is_long)

    @Slot(str)
    def _on_offer(self, name: str) -> None:
        actions: dict[str, Callable[[], object]] = {
            SHORTEN: self.shortenRequested.emit,
            OTHER_MODEL: self.modelRequested.emit,
            ENDLESS_CACHE: self._use_endless_cache,
        }
        if name in actions:
            actions[name]()

    def _use_endless_cache(self) -> None:
        self._cache.choose(self._endless_cache(), "cache")
        self.retryRequested.emit()


def _count_texts(count: TokenCount, is_too_long: bool) -> tuple[str, str]:
    """Return the text beside the prompt and its explanation."""
    counted = words.count(count.tokens, "token")
    if count.context is None:
        return counted, ""
    room = tr("The model reads {context:,} tokens: prompt and answer together.").format(context=count.context)
    if is_too_long:
        return tr("{tokens:,} / {context:,}").format(tokens=count.tokens, context=count.context), room
    return counted, room
