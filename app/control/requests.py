"""Builds the request of a run from the current settings."""

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
    """The selections of the toolbar."""

    model: ModelChoice
    strategy: StrategyChoice
    cache: RegistryChoice
    drafts: DraftChoice
    seed: SeedBox


class RunInput:
    """Input of a run: the prompt or the chat turns, and the media files."""

    def __init__(self, chat: ChatController, media: MediaController) -> None:
        self._chat, self._media = chat, media

    @property
    def problems(self) -> list[str]:
        """Return the reasons why there is no valid input, a sentence each."""
        return [*self._chat.problems, *self._media.problems]

    @property
    def prompt(self) -> Prompt:
        """The prompt; empty for a model that reads no text."""
        return self._chat.prompt() if self._media.takes.text else ""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the selected model accepts."""
        return self._media.sent_paths

    @property
    def when_full(self) -> str:
        """Policy for turns that do not fit the context."""
        return self._chat.conversation.when_full


class RequestBuilder:
    """Builds requests from the panels; changes nothing but an unlocked seed, which is drawn for each run."""

    def __init__(
        self, chosen: ChosenSettings, run_input: RunInput, loading: ModelLoadController, compute: ComputeSection
    ) -> None:
        self._chosen, self._input, self._loading, self._compute = chosen, run_input, loading, compute

    @property
    def problems(self) -> list[str]:
        """Return the reasons why no run can start, a sentence each."""
        return [*self.settings_problems, *self._input.problems]

    @property
    def settings_problems(self) -> list[str]:
        """The same for a run that has a prompt already."""
        chosen = self._chosen
        model = chosen.drafts.problems if chosen.model.name else [tr("No model is selected.")]
        settings = (*chosen.strategy.parameters.problems(), *chosen.cache.parameters.problems())
        return [*model, *settings]

    def request(self, seed: int | None = None) -> RunRequest:
        """Return the request for the current settings; an unlocked seed is drawn unless `seed` is given."""
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
        """The grammar of a new run; None without one."""
        return self._chosen.strategy.parameters.values().get(GRAMMAR)

    def current_request(self) -> RunRequest:
        """Return the request with the shown seed, without drawing one."""
        return self.request(seed=self._chosen.seed.spin.value())

    def repeat_request(self, request: RunRequest) -> RunRequest:
        """Return the same request again; an unlocked seed is drawn."""
        seed = self._chosen.seed
        again = replace(request, load=self._loading.with_permissions(request.load))
        return again if seed.is_locked else replace(again, seed=seed.next_seed())

    def regenerate_request(self, prompt: Prompt) -> RunRequest:
        """Return a request for another answer to `prompt`, with another seed even if it is locked."""
        seed = self._chosen.seed
        if seed.is_locked:
            seed.spin.setValue(seed.spin.value() + 1)
        return replace(self.request(), prompt=prompt)


START_DELAY_MS = 60
"""Delay after the start of a run."""


class SettingsChangeWatcher(QObject):
    """Compares the settings with the last run's request, at most once per event loop turn. `grammarSet(grammar)`: new
    runs use another grammar, None for none.
    """

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
        """Created when a setting changes while a step is selected."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._check)
        session.runStarted.connect(self._on_run_started)
        session.runShown.connect(self.schedule_check)
        session.selectionChanged.connect(self.schedule_check)

    @property
    def changes(self) -> list[SettingChange]:
        """The changed settings; empty before the first run."""
        return self._changes(self._requests.current_request())

    def _changes(self, now: RunRequest) -> list[SettingChange]:
        run = self._session.run
        if run is None or run.request.scored:  # scores do not depend on these settings
            return []
        return list_changes(run.request, now)

    @Slot()
    def schedule_check(self) -> None:
        """Check for changes soon."""
        self._timer.start(0)

    @Slot()
    def _on_run_started(self) -> None:
        """Delay the check so that the run starts first, unless a What-if result must be cleared at once."""
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
