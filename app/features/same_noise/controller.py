"""Opens the window of other settings with the same noise, sends its queries, and keeps their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope import core
from decodescope.app.control.export import ExportController
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.requests import ChosenSettings, RequestBuilder
from decodescope.app.control.run_control import RunController
from decodescope.app.control.settings_controller import SettingsController
from decodescope.app.session.session import Session
from decodescope.app.state import conversation
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, RunRequest, is_token_ids, is_turns
from decodescope.core import caches, strategies
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.same_noise.panel import SameNoiseWindow
    from decodescope.app.features.same_noise.state import AtlasInput, PageName, PageState, TwinInput
    from decodescope.app.session.queries.base import Answer, Query


class SameNoiseParts(NamedTuple):
    """The parts of the window that the controller uses."""

    session: Session
    chosen: ChosenSettings
    requests: RequestBuilder
    loading: ModelLoadController
    setup: SettingsController
    runs: RunController
    export: ExportController


class SavedPages(NamedTuple):
    """State of the pages for a window that is rebuilt."""

    states: Mapping[str, PageState]
    atlas_input: AtlasInput | None
    page: str
    """The shown page; empty if the window is closed."""


class SameNoiseController(QObject):
    """Controls the window. Results stay when it is closed; a run that starts ends a query in progress."""

    def __init__(self, parent_window: QWidget, parts: SameNoiseParts) -> None:
        super().__init__(parent_window)
        self._parent_window, self._parts = parent_window, parts
        self._window: SameNoiseWindow | None = None
        self._states: dict[str, PageState] = {}
        self._atlas_input: AtlasInput | None = None
        session = parts.session
        session.answered.connect(self._on_answered)
        for signal in (session.runShown, session.finished, session.runStarted, session.selectionChanged):
            signal.connect(self._on_run)
        session.modelReady.connect(self._on_model)

    @Slot()
    def open_atlas(self) -> SameNoiseWindow:
        """Open the atlas page."""
        return self._open("atlas")

    @Slot()
    def open_effects(self) -> SameNoiseWindow:
        """Open the page of the settings' effects."""
        return self._open("effects")

    @Slot()
    def open_twin(self) -> SameNoiseWindow:
        """Open the twin page."""
        return self._open("twin")

    @property
    def saved_pages(self) -> SavedPages:
        """The state, for a window that is rebuilt in another language."""
        page = self._window.page_name if self._window is not None else ""
        return SavedPages(self._states, self._window.atlas.wanted if self._window else self._atlas_input, page)

    def resume(self, saved: SavedPages) -> None:
        """Restore the state."""
        self._states, self._atlas_input = dict(saved.states), saved.atlas_input
        opening = {"atlas": self.open_atlas, "effects": self.open_effects, "twin": self.open_twin}
        if saved.page in opening:
            opening[saved.page]()

    @Slot()
    def wording_changed(self) -> None:
        """Update the texts after a change of the level of detail."""
        if self._window is not None:
            self._window.wording_changed()

    # The window

    def _open(self, name: PageName) -> SameNoiseWindow:
        from decodescope.app.features.same_noise.panel import SameNoiseWindow

        if self._window is None:
            self._window = window = SameNoiseWindow(self._parent_window.window())
            info = self._parts.session.model
            window.atlas.show_settings(info.vocabulary if info is not None else 0)
            if self._atlas_input is not None:
                window.atlas.set_input(self._atlas_input)
            for page_name, page in window.pages.items():
                page.startRequested.connect(partial(self._start, page_name))
                page.stopRequested.connect(partial(self._stop, page_name))
                page.exportRequested.connect(partial(self._on_export, page_name))
            window.atlas.useRequested.connect(self._use)
            window.pageChanged.connect(self._on_page)
            window.finished.connect(self._on_closing)
            window.destroyed.connect(self._on_closed)
        self._window.show_page(name)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()
        return self._window

    def _state(self, name: str) -> PageState:
        from decodescope.app.features.same_noise.state import PageState

        return self._states.setdefault(name, PageState())

    @Slot(str)
    def _on_page(self, name: PageName) -> None:
        if self._window is None:
            return
        run = self._parts.session.run
        if name == "twin":
            self._offer_twins(run)
        if name == "effects":
            self._show_recorded_effects(run)
        self._show(name)

    def _show(self, name: PageName) -> None:
        """Show the state of a page."""
        if self._window is None:
            return
        page, run = self._window.pages[name], self._parts.session.run
        state = self._state(name)
        if name == "atlas":
            problems = join_sentences(*self._parts.requests.problems)
            if state.result is not None and isinstance(state.result.atlas.request, RunRequest):
                text = tr("Shown: {facts}").format(facts=_facts(state.result.atlas.request))
            else:
                facts = _facts(self._parts.requests.current_request()) if not problems else ""
                text = tr("Current prompt and settings: {facts}").format(facts=facts) if facts else ""
            page.subject.setText(text)
            page.show_state(state, problems)
        else:
            reason = _unsuitable_reason(run)
            text = tr("Shown run: {facts}").format(facts=_facts(run.request)) if run is not None and not reason else ""
            is_other = name == "twin" and state.result is not None and state.subject is not run
            other = tr("The comparison below is about an earlier run.") if is_other else ""
            page.subject.setText(join_sentences(f"{text}." if text and other else text, other))
            page.show_state(state, reason)
            if name == "effects" and state.result is not None and state.result.is_exact and not state.is_busy:
                page.start.setEnabled(False)
        page.subject.setVisible(bool(page.subject.text()))
        if state.result is not None:
            self._parts.export.add_lab(f"same_noise_{name}", _TITLES[name](), page)

    @Slot()
    def _on_closing(self) -> None:
        if self._window is not None:
            self._atlas_input = self._window.atlas.wanted

    @Slot()
    def _on_closed(self) -> None:
        self._window = None
        for name in ("atlas", "effects", "twin"):
            self._parts.export.remove_lab(f"same_noise_{name}")

    def _on_export(self, name: PageName) -> None:
        assert self._window is not None
        self._parts.export.open_dialog_for(f"same_noise_{name}", self._window)

    # Queries

    def _start(self, name: PageName) -> None:
        """Start the query of a page."""
        if self._window is None or self._state(name).is_busy:
            return
        if name == "atlas":
            self._send(name, self._atlas_query(self._window.atlas.wanted), None)
        elif name == "effects":
            self._start_effects(is_exact=True)
        else:
            self._start_twin()

    def _stop(self, name: PageName) -> None:
        query = self._state(name).query
        if query is not None:
            query.cancel.set()

    def _send(self, name: PageName, query: Query, run: Run | None) -> None:
        state = self._state(name)
        state.query, state.progress, state.error, state.was_stopped = query, None, None, False
        if name != "effects":
            state.result = None
        state.subject = run
        self._show(name)
        self._parts.session.request(query)

    def _atlas_query(self, wanted: AtlasInput) -> Query:
        from decodescope.app.features.same_noise.session import AtlasQuery
        from decodescope.app.features.same_noise.state import sampling_request

        request = sampling_request(self._parts.requests.current_request())
        request = RunRequest.with_settings(request, {"max_new_tokens": wanted.tokens})
        return AtlasQuery(replace(request, top_n=0), wanted, load=request.load)

    def _start_effects(self, *, is_exact: bool) -> None:
        from decodescope.app.features.same_noise.session import EffectsQuery

        run = self._parts.session.run
        if run is None or _unsuitable_reason(run):
            return
        ids, load = tuple(token.id for token in run.tokens), self._parts.loading.request()
        if self._window is not None:
            self._window.effects.length = len(ids)
        query = EffectsQuery(run.request, tuple(run.events), run.shown_index, ids, is_exact, load=load)
        self._send("effects", query, run)

    def _show_recorded_effects(self, run: Run | None) -> None:
        """Show the effects of the shown run as far as it recorded them, unless they are shown already."""
        state = self._state("effects")
        if run is None or _unsuitable_reason(run):
            state.result = state.error = None
            return
        key = (run.id, run.shown_index)
        if state.is_busy or (state.subject is run and self._effects_key == key and (state.result or state.error)):
            return
        self._effects_key = key
        state.result = None
        self._start_effects(is_exact=False)

    _effects_key: tuple[str, int] = ("", 0)

    def _start_twin(self) -> None:
        from decodescope.app.features.same_noise.session import TwinQuery
        from decodescope.app.features.same_noise.state import sampling_request
        from decodescope.app.state.setting_values import InvalidValueError

        run = self._parts.session.run
        if run is None or _unsuitable_reason(run) or self._window is None:
            return
        page = self._window.twin
        try:
            wanted = page.wanted()
        except InvalidValueError as error:
            self._state("twin").error = ErrorReport(tr("Invalid value"), str(error))
            self._show("twin")
            return
        request = sampling_request(run.request)
        ids = tuple(token.id for token in run.tokens)
        page.length = len(ids)
        changed = _changed_request(request, wanted)
        query = TwinQuery(request, changed, wanted, ids, load=self._parts.loading.request())
        self._send("twin", query, run)

    def _offer_twins(self, run: Run | None) -> None:
        from decodescope.app.features.same_noise.state import KEYED_NOISE, sampling_request

        if self._window is None or run is None or _unsuitable_reason(run):
            return
        request = sampling_request(run.request)
        strategy = strategies.registry[request.strategy]
        hidden = {KEYED_NOISE, "do_sample", "num_return_sequences", "max_time"}
        parameters = [one for one in strategy.parameters if one.name not in hidden]
        defaults = {one.name: one.default for one in parameters}

        def current(name: str) -> object:
            value = request.settings.get(name)
            return value if value is not None else defaults.get(name)

        info = self._parts.session.model
        refused = info.unsupported_caches if info is not None else {}
        others = [
            (tr(one.title), name)
            for name, one in caches.registry.items()
            if name not in refused and name != request.cache
        ]
        models = [
            (one.title, one.name)
            for one in self._parts.chosen.model.entries
            if one.problem is None and one.name != request.model and not core.remote.is_address(one.name)
        ]
        self._window.twin.show_choices(parameters, current, _prompt_text(request), others, models)

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        for name in ("atlas", "effects", "twin"):
            state = self._states.get(name)
            if state is None or state.query is not answer.query:
                continue
            if not answer.has_ended:
                state.progress = answer.result
            else:
                state.was_stopped = answer.query.cancel.is_set()
                state.query = state.progress = None
                state.error = answer.error
                if answer.result is not None:
                    state.result = answer.result
            self._show(name)

    # The window's run

    @Slot()
    def _on_run(self, *_arguments: Any) -> None:
        if self._window is None:
            return
        run = self._parts.session.run
        if run is not None and run.outcome is None:
            return
        name = self._window.page_name
        if name == "twin" and run is not None and self._state("twin").subject is not run:
            prompt = _prompt_text(run.request)
            if prompt is not None:
                self._window.twin.set_prompt(prompt)
        self._on_page(name)

    @Slot(object)
    def _on_model(self, _info: object) -> None:
        info = self._parts.session.model
        if self._window is not None and info is not None:
            self._window.atlas.show_settings(info.vocabulary)
            self._show(self._window.page_name)

    @Slot(float)
    def _use(self, value: float) -> None:
        """Put a value into the settings, and run with the noise of the atlas: it writes the text of the value."""
        result = self._state("atlas").result
        if result is None:
            return
        request = replace(result.atlas.request_at(value), top_n=self._parts.requests.current_request().top_n)
        if not result.atlas.word:  # the editor of word biases has texts, and the atlas token ids
            self._parts.setup.apply_settings(request)
        self._parts.runs.start(request)


def _unsuitable_reason(run: Run | None) -> str:
    """Return why the pages cannot be about a run; empty if they can."""
    if run is None:
        return tr("Run something first: this page is about the shown run.")
    if run.outcome is None:
        return tr("Wait until the run has ended.")
    if run.is_scored:
        return tr("A scored text was not chosen by settings. Run a prompt instead.")
    if not run.tokens or run.beams is not None:
        return tr("The shown run has no tokens that were chosen one by one. Use sampling or greedy decoding.")
    return ""


def _facts(request: RunRequest) -> str:
    """Return what a run is about: its prompt, model, strategy and seed."""
    strategy = strategies.registry.get(request.strategy)
    text = _prompt_text(request)
    parts = [
        tr("“{text}”").format(text=core.cut_short(text, 60)) if text else "", request.model,
        tr(strategy.title) if strategy is not None else request.strategy, tr("seed {seed}").format(seed=request.seed),
    ]  # fmt: skip
    return " · ".join(filter(None, parts))


def _prompt_text(request: RunRequest) -> str | None:
    """Return the prompt, or the last message of a chat; None for token ids."""
    if is_token_ids(request.prompt):
        return None
    return conversation.last_user_message(request.prompt) if is_turns(request.prompt) else str(request.prompt)


def _changed_request(request: RunRequest, wanted: TwinInput) -> RunRequest:
    """Return the request of the other side."""
    if wanted.kind == "setting":
        return RunRequest.with_settings(request, {wanted.name: wanted.value})
    if wanted.kind == "cache":
        return replace(request, cache=wanted.name, cache_options={})
    if wanted.kind == "prompt":
        text = str(wanted.value)
        if not is_turns(request.prompt):
            return replace(request, prompt=text)
        turns = list(request.prompt)
        last = max(n for n, turn in enumerate(turns) if turn["role"] == "user")
        turns[last] = {"role": "user", "content": text}
        return replace(request, prompt=tuple(turns))
    return request


_TITLES: Mapping[str, Any] = {
    "atlas": lambda: tr("Atlas"), "effects": lambda: tr("What each setting did"), "twin": lambda: tr("Twin"),
}  # fmt: skip
