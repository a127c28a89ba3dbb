"""From everything that is set to the request of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.chat import ChatController
from app.control.media import MediaController
from app.control.model_choice import DraftChoice, ModelChoice
from app.control.model_loading import ModelLoadController
from app.control.registry_choice import RegistryChoice, StrategyChoice
from app.panels.status_line import StatusLine
from app.panels.toolbar import SeedBox
from app.session.session import Session
from app.state.setting_changes import SettingChange, list_changes
from app.state.worker_messages import GRAMMAR, Prompt, RunRequest, split_settings
from app.storage.settings import ComputeSection
from resources.language import tr

if TYPE_CHECKING:
    from app.control.step_inspection import WhatIfController


class ChosenSettings(NamedTuple):
    """What the toolbar has chosen."""

    model: ModelChoice
    strategy: StrategyChoice
    cache: RegistryChoice
    drafts: DraftChoice
    seed: SeedBox


class RunInput:
    """What a run is given to read: the prompt or the turns of the chat, and the files beside it."""

    def __init__(self, chat: ChatController, media: MediaController) -> None:
        self._chat, self._media = chat, media

    @property
    def problems(self) -> list[str]:
        """Why nothing can be read as it stands, a sentence each."""
        return [*self._chat.problems, *self._media.problems]

    @property
    def prompt(self) -> Prompt:
        """Empty for a model that reads no text."""
        return self._chat.prompt() if self._media.takes.text else ""

    @property
    def files(self) -> tuple[str, ...]:
        """Those that the chosen model takes."""
        return self._media.sent_paths

    @property
    def when_full(self) -> str:
        """What becomes of turns that have no place."""
        return self._chat.conversation.when_full


class RequestBuilder:
    """Gathers what the panels say; changes nothing but the seed, which an unlocked box draws anew for a run."""

    def __init__(
        self, chosen: ChosenSettings, run_input: RunInput, loading: ModelLoadController, compute: ComputeSection
    ) -> None:
        self._chosen, self._input, self._loading, self._compute = chosen, run_input, loading, compute

    @property
    def problems(self) -> list[str]:
        """Why no run can start as things are set, a sentence each."""
        return [*self.settings_problems, *self._input.problems]

    @property
    def settings_problems(self) -> list[str]:
        """The same for a run that has its prompt already."""
        chosen = self._chosen
        model = chosen.drafts.problems if chosen.model.name else [tr("No model is chosen.")]
        settings = (*chosen.strategy.parameters.problems(), *chosen.cache.parameters.problems())
        return [*model, *settings]

    def request(self, seed: int | None = None) -> RunRequest:
        """The run as everything is set now; an unlocked seed is drawn unless one is given."""
        chosen, compute = self._chosen, self._compute
        config, options = split_settings(chosen.strategy.strategy, chosen.strategy.parameters.values())
        return RunRequest(
            self._input.prompt,
            strategy=chosen.strategy.name,
            config=config,
            options=options,
            draft_names=chosen.drafts.names,
            cache=chosen.cache.name,
            cache_options=chosen.cache.parameters.values(),
            media=self._input.files,
            seed=chosen.seed.next_seed() if seed is None else seed,
            top_n=compute.top_n,
            prefix_budget=compute.prefix_budget,
            memory_fallback=compute.memory_fallback,
            when_full=self._input.when_full,
            load=self._loading.request(),
        )

    @property
    def grammar(self) -> object:
        """What a new run's text would be held to; None for nothing."""
        return self._chosen.strategy.parameters.values().get(GRAMMAR)

    def current_request(self) -> RunRequest:
        """The same with the seed as it stands there, for looking at."""
        return self.request(seed=self._chosen.seed.spin.value())

    def repeat_request(self, request: RunRequest) -> RunRequest:
        """The same run, whatever has been set since; an unlocked seed is drawn anew."""
        seed = self._chosen.seed
        again = replace(request, load=self._loading.with_permissions(request.load))
        return again if seed.is_locked else replace(again, seed=seed.next_seed())

    def regenerate_request(self, prompt: Prompt) -> RunRequest:
        """Another answer to `prompt`: with another seed even where that is locked."""
        seed = self._chosen.seed
        if seed.is_locked:
            seed.spin.setValue(seed.spin.value() + 1)
        return replace(self.request(), prompt=prompt)


START_DELAY_MS = 60
"""Behind a run's beginning."""


class SettingsChangeWatcher(QObject):
    """Compares what is set with the last run's request, once for every turn of the event loop in which it changed.
    `grammarSet(grammar)`: new runs are held to another one, None for none."""

    grammarSet = Signal(object)

    def __init__(
        self,
        session: Session,
        requests: RequestBuilder,
        status: StatusLine,
        make_what_if: Callable[[], WhatIfController],
    ) -> None:
        super().__init__(status)
        self._session, self._requests, self._status = session, requests, status
        self._make_what_if = make_what_if
        self._grammar: object = None
        self._what_if: WhatIfController | None = None
        """What if: made when something is set otherwise while a step is selected."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._check)
        session.runStarted.connect(self._on_run_started)
        session.runShown.connect(self.schedule_check)
        session.selectionChanged.connect(self.schedule_check)

    @property
    def changes(self) -> list[SettingChange]:
        """What is set otherwise now; empty before the first run."""
        return self._changes(self._requests.current_request())

    def _changes(self, now: RunRequest) -> list[SettingChange]:
        run = self._session.run
        if run is None or run.request.scored:  # what is set has no part in a score
            return []
        return list_changes(run.request, now)

    @Slot()
    def schedule_check(self) -> None:
        """Something may have changed."""
        self._timer.start(0)

    @Slot()
    def _on_run_started(self) -> None:
        """A run begins, whose text does not wait for this; what is supposed of the one before ends at once."""
        self._timer.start(0 if self._what_if is not None else START_DELAY_MS)

    @Slot()
    def _check(self) -> None:
        now = self._requests.current_request()
        if (grammar := now.grammar) != self._grammar:
            self._grammar = grammar
            self.grammarSet.emit(grammar)
        changes = self._changes(now)
        self._status.show_changes(changes)
        run = self._session.run
        if self._what_if is None and changes and run is not None and run.selected is not None:
            self._what_if = self._make_what_if()
        if self._what_if is not None:
            self._what_if.update_result()
