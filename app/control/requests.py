"""Builds the request of a run from the current settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from PySide6.QtCore import SignalInstance

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.chat import AnswerRequest, ChatController
from decodescope.app.control.model_choice import DraftChoice, ModelChoice
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.prompt_length import PromptLengthController
from decodescope.app.control.registry_choice import RegistryChoice, StrategyChoice
from decodescope.app.panels.toolbar import SeedBox
from decodescope.app.state.worker_messages import GRAMMAR, ErrorReport, Prompt, RunRequest
from decodescope.app.storage.settings import ComputeSection
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core import Modalities


class ChosenSettings(NamedTuple):
    """The selections of the toolbar."""

    model: ModelChoice
    strategy: StrategyChoice
    cache: RegistryChoice
    drafts: DraftChoice
    seed: SeedBox


class PromptMedia(Protocol):
    """The media files of the prompt, as far as settings and requests use them. `changed`: the files changed."""

    @property
    def changed(self) -> SignalInstance: ...

    @property
    def takes(self) -> Modalities: ...

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def sent_paths(self) -> tuple[str, ...]: ...

    @property
    def problems(self) -> list[str]: ...

    def set_paths(self, paths: Sequence[str], /) -> None: ...


class RunInput:
    """Input of a run: the prompt or the chat turns, and the media files."""

    def __init__(self, chat: ChatController, media: PromptMedia, length: PromptLengthController) -> None:
        self._chat, self._media, self._length = chat, media, length

    @property
    def error(self) -> ErrorReport | None:
        """The reason why the model cannot read the input, if that is known already."""
        return self._length.error if self._media.takes.text else None

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
        self, chosen: ChosenSettings, run_input: RunInput, loading: ModelLoadController, compute: ComputeSection,
        adapters: AdapterController,
    ) -> None:  # fmt: skip
        self._chosen, self._input, self._loading, self._compute = chosen, run_input, loading, compute
        self._adapters = adapters

    @property
    def problems(self) -> list[str]:
        """Return the reasons why no run can start, a sentence each."""
        return [*self.settings_problems, *self._input.problems]

    @property
    def input_error(self) -> ErrorReport | None:
        """The reason why the model cannot read the input, if that is known before the run."""
        return self._input.error

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
        return RunRequest(
            self._input.prompt,
            strategy=chosen.strategy.name,
            config=chosen.strategy.parameters.values(),
            draft_names=chosen.drafts.names,
            cache=chosen.cache.name,
            cache_options=chosen.cache.parameters.values(),
            media=self._input.files,
            seed=chosen.seed.next_seed() if seed is None else seed,
            generator_state=chosen.seed.generator_state,
            top_n=compute.top_n,
            prefix_budget=compute.prefix_budget,
            memory_fallback=compute.memory_fallback,
            when_full=self._input.when_full,
            load=self._loading.request(),
            adapters=self._adapters.choices,
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
        return again if seed.is_locked else replace(again, seed=seed.next_seed(), generator_state="")

    def answer_request(self, wanted: AnswerRequest) -> RunRequest:
        """Return a request for an answer in a chat: another answer has another seed, even if it is locked, and an
        edited one keeps its tokens as far as they spell the edited text.
        """
        seed, edited = self._chosen.seed, wanted.edited
        if wanted.is_again and seed.is_locked:
            seed.spin.setValue(seed.spin.value() + 1)
        request = replace(self.request(), prompt=wanted.messages)
        if edited is None:
            return request
        beginning = edited.beginning_for(wanted.text, is_same_model=edited.model in ("", request.model))
        shared = sum(isinstance(part, int) for part in beginning)
        return replace(request, beginning=beginning, parent=edited.run_id, shared_tokens=shared)
