"""Opens the window “Why do they differ?” and compares the runs that are chosen in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSize, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.model_list import ENGINE
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.requests import RequestBuilder
from decodescope.app.session.queries.base import Answer, Query
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core import remote
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.differences.panel import DifferenceDialog
    from decodescope.app.features.differences.session import (
        DifferenceQuery,
        DraftCheckQuery,
        EngineCheckQuery,
        NearMissQuery,
    )
    from decodescope.app.features.differences.state import RunChoice, SavedRuns
    from decodescope.app.features.differences.view.model_check_pages import CheckPage


class DifferenceController(QObject):
    """Controls the window above `parent_window`. Runs are those of the history, and the shown run."""

    def __init__(
        self, parent_window: QWidget, session: Session, history: SavedRuns, requests: RequestBuilder,
        model: ModelChoice, loading: ModelLoadController,
    ) -> None:  # fmt: skip
        super().__init__(parent_window)
        self._requests, self._model, self._loading = requests, model, loading
        self._parent_window, self._session, self._history = parent_window, session, history
        self._dialog: DifferenceDialog | None = None
        self._runs: list[RunChoice] = []
        self._pair: tuple[int, int] = (0, 0)
        self._query: DifferenceQuery | None = None
        self._has_tried = False
        self._check: NearMissQuery | DraftCheckQuery | EngineCheckQuery | None = None
        """The query of the other two pages in progress."""
        self._answers: dict[str, Answer] = {}
        """The last answer of each of these pages, by name; they outlive the window."""
        self._choices: dict[str, tuple[str, int]] = {}
        """What was chosen last on each of these pages, and the number of tokens."""
        session.answered.connect(self._on_answered)

    @property
    def page(self) -> str:
        """Name of the page that the window shows; empty if it is closed."""
        return self._dialog.tabs.value if self._dialog is not None else ""

    @Slot()
    def open(self) -> DifferenceDialog:
        """Open the window: B is the shown run, or the latest one, and A the one before it."""
        from decodescope.app.features.differences.panel import SIZE, DifferenceDialog
        from decodescope.app.widgets.dialog import WINDOW_FRAME
        from decodescope.app.widgets.screen import available_rect

        if self._dialog is None:
            self._dialog = dialog = DifferenceDialog(self._parent_window.window())
            theme, room = dialog.current_theme, available_rect(dialog).size() - WINDOW_FRAME
            size = QSize(theme.px(SIZE[0]), theme.px(SIZE[1])).boundedTo(room)
            dialog.resize(size)
            for signal, slot in (
                (dialog.runs.chosen, self._on_chosen), (dialog.runs.tryRequested, self._try_out),
                (dialog.runs.stopRequested, self._stop), (dialog.near_misses.startRequested, self._find_near_misses),
                (dialog.drafts.startRequested, self._check_draft), (dialog.near_misses.stopRequested, self._stop_check),
                (dialog.drafts.stopRequested, self._stop_check),
            ):  # fmt: skip
                signal.connect(slot)
            dialog.destroyed.connect(self._on_closed)
            self._list_models()
            for page in (dialog.near_misses, dialog.drafts):
                page.choose(*self._choices.get(page.objectName(), (page.choice.currentData(), page.tokens.value())))
            for answer in self._answers.values():
                self._show_check(answer)
            if self._check is not None:
                self._page_of(self._check).set_busy(True)
        else:
            self._list_models()
        self._list_runs()
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    def _list_runs(self) -> None:
        from decodescope.app.features.differences.state import list_runs

        assert self._dialog is not None
        shown = self._shown_run()
        self._runs = list_runs(self._history, shown)
        b = next((place for place, run in enumerate(self._runs) if shown is not None and run.id == shown.id), 0)
        a = b + 1 if b + 1 < len(self._runs) else 0
        self._dialog.runs.show_runs(self._runs, a, b)
        if len(self._runs) > 1:
            self._on_chosen(a, b)

    def _shown_run(self) -> RunChoice | None:
        from decodescope.app.features.differences.state import RunChoice, run_title

        run = self._session.run
        if run is None or run.started is None or run.outcome is None or run.is_scored:
            return None
        title = run_title(tr("Shown run"), run.started.model, run.started.strategy)
        return RunChoice(run.id, title, tuple(run.events), run.request.load)

    @Slot(int, int)
    def _on_chosen(self, a: int, b: int) -> None:
        """Compare two runs of the lists."""
        self._pair = a, b
        self._has_tried = False
        self._send(tries=False)

    @Slot()
    def _try_out(self) -> None:
        self._has_tried = True
        self._send(tries=True)

    def _send(self, *, tries: bool) -> None:
        from decodescope.app.features.differences.session import DifferenceQuery

        if self._dialog is None:
            return
        self._stop()
        first, second = (self._runs[place] for place in self._pair)
        loads = [self._load_of(run) if tries else LoadRequest() for run in (first, second)]
        other = loads[1] if loads[1] != loads[0] else None
        self._query = DifferenceQuery(first.source, second.source, tries=tries, load=loads[0], other_load=other)
        self._dialog.runs.set_busy(True, tr("Comparing…"))
        self._session.request(self._query)

    def _load_of(self, run: RunChoice) -> LoadRequest:
        """Return the model of a run, with the current permissions; empty if it is unknown."""
        if run.load.model:
            return self._loading.with_permissions(run.load)
        from decodescope.app.state.request_json import RequestFormatError, request_from_json

        try:
            saved: dict[str, Any] = self._history.query(lambda store: store.request(run.id), {})
            return self._loading.with_permissions(request_from_json(saved).load)
        except RequestFormatError:
            return LoadRequest()

    @Slot()
    def _stop(self) -> None:
        if self._query is not None:
            self._query.cancel.set()

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if self._check is not None and answer.query is self._check:
            self._on_checked(answer)
        if self._dialog is None or answer.query is not self._query:
            return
        if not answer.has_ended:
            self._dialog.runs.set_busy(True, str(answer.result))
            return
        self._query = None
        if answer.error is not None:
            self._dialog.runs.show_message(join_sentences(answer.error.cause, answer.error.remedy), "danger")
        elif answer.result is not None:
            self._dialog.runs.show_result(answer.result, self._why_not_tried(answer.result.cause))
        else:
            self._dialog.runs.show_message(tr("Stopped."))

    def _why_not_tried(self, cause: str) -> str | None:
        """Return why parts cannot be tried out on a model; empty if they can, None if the cause is known."""
        if cause != "unknown" or self._has_tried:
            return None
        loads = [self._load_of(self._runs[place]) for place in self._pair]
        if not all(load.model for load in loads) or any(remote.is_address(load.model) for load in loads):
            return tr("Causes are tried out only with models on this computer.")
        known = {entry.name for entry in self._model.entries if entry.problem is None}
        missing = [load.model for load in loads if load.model not in known]
        if missing:
            return tr("{model} is no longer in the list of models. Add it again to try causes out.").format(
                model=missing[0]
            )
        return ""

    # The pages that read a text with two models

    def _list_models(self) -> None:
        """List the other models on this computer, and the engines."""
        from decodescope.app.features.differences.view.model_check_pages import ENGINE_CHOICE, HEAD, MODEL
        from decodescope.core import bundled_heads, catalog

        assert self._dialog is not None
        known = [entry for entry in self._model.entries if entry.problem is None]
        others = [entry for entry in known if entry.source != ENGINE and entry.name != self._model.name]
        own = next((one for one in known if one.name == self._model.name and one.source != ENGINE), None)
        drafts = sorted(others, key=lambda entry: own is None or not catalog.same_tokenizer(entry, own))
        engines = [
            (ENGINE_CHOICE + entry.name, tr("Engine: {name}").format(name=entry.title))
            for entry in known if entry.source == ENGINE
        ]  # fmt: skip
        heads = [(HEAD + name, tr("Draft head: {name}").format(name=name)) for name in bundled_heads()]
        heads.append((HEAD, tr("The model's own heads")))
        self._dialog.drafts.show_choices([*((entry.name, entry.title) for entry in drafts), *heads, *engines])
        self._dialog.near_misses.show_models([(MODEL + entry.name, entry.title) for entry in others])
        self._dialog.drafts.show_references([(own.name, own.title)] if own is not None else [])

    def _request(self, page: CheckPage, tokens: int, *, is_greedy: bool) -> RunRequest | None:
        """Return the window's request without drafts, for `tokens` tokens; None if there is a problem, which the page
        shows.
        """
        request = self._requests.current_request()
        problems = self._requests.problems
        if remote.is_address(request.model):
            problems = [tr("An engine returns only some probabilities. Select a model on this computer.")]
        if problems:
            page.show_message(join_sentences(*problems), "danger")
            return None
        config: dict[str, Any] = {"max_new_tokens": tokens}
        options: Mapping[str, Any] = {}
        if not is_greedy and request.strategy == "sampling":
            config, options = {**request.config, **config}, request.options
        strategy = "greedy" if is_greedy or request.strategy != "sampling" else "sampling"
        options = request.options if strategy == request.strategy else {}  # greedy search has no options of sampling
        return replace(
            request, strategy=strategy, config=config, options=options, draft_names=(), cache="dynamic",
            cache_options={}, top_n=1,
        )  # fmt: skip

    @Slot(str, int)
    def _find_near_misses(self, change: str, tokens: int) -> None:
        from decodescope.app.features.differences.session import NearMissQuery
        from decodescope.app.features.differences.view.model_check_pages import CACHE, MODEL, WEIGHTS

        if self._dialog is None:
            return
        page = self._dialog.near_misses
        if (request := self._request(page, tokens, is_greedy=True)) is not None:
            weights = change.removeprefix(WEIGHTS) if change.startswith(WEIGHTS) else ""
            cache = change.removeprefix(CACHE) if change.startswith(CACHE) else ""
            model = change.removeprefix(MODEL) if change.startswith(MODEL) else ""
            self._start(page, NearMissQuery(request, weights, cache, model, load=request.load))

    @Slot(str, int)
    def _check_draft(self, name: str, tokens: int) -> None:
        from decodescope.app.features.differences.session import DraftCheckQuery
        from decodescope.app.features.differences.view.model_check_pages import ENGINE_CHOICE, HEAD

        if self._dialog is None:
            return
        page = self._dialog.drafts
        if name.startswith(ENGINE_CHOICE):
            self._check_engine(name.removeprefix(ENGINE_CHOICE), tokens)
        elif (request := self._request(page, tokens, is_greedy=False)) is not None:
            head = name.removeprefix(HEAD) if name.startswith(HEAD) else None
            names = (name,) if head is None else ()
            self._start(page, DraftCheckQuery(replace(request, draft_names=names), head, load=request.load))

    def _check_engine(self, address: str, tokens: int) -> None:
        from decodescope.app.features.differences.session import EngineCheckQuery

        assert self._dialog is not None
        page, request = self._dialog.drafts, self._requests.current_request()
        if not request.prompt:
            page.show_message(tr("The prompt is empty. Write a text for the engine to continue."), "danger")
            return
        engine = self._loading.with_permissions(LoadRequest(address))
        load = request.load if page.reference.currentData() else LoadRequest()
        self._start(page, EngineCheckQuery(engine, request, page.answers.value(), tokens, load=load))

    def _start(self, page: CheckPage, query: NearMissQuery | DraftCheckQuery | EngineCheckQuery) -> None:
        self._stop_check()
        if self._check is not None:
            self._page_of(self._check).set_busy(False)
        self._check = query
        self._choices[page.objectName()] = page.choice.currentData(), page.tokens.value()
        for name in [name for name, answer in self._answers.items() if self._page_of(answer.query) is page]:
            del self._answers[name]
        page.set_busy(True)
        page.show_message(tr("Loading the model"), "muted")
        self._session.request(query)

    @Slot()
    def _stop_check(self) -> None:
        if self._check is not None:
            self._check.cancel.set()

    def _page_of(self, query: Query) -> CheckPage:
        from decodescope.app.features.differences.session import NearMissQuery

        assert self._dialog is not None
        return self._dialog.near_misses if isinstance(query, NearMissQuery) else self._dialog.drafts

    def _on_checked(self, answer: Answer) -> None:
        if answer.has_ended:
            self._check = None
            self._answers[type(answer.query).__name__] = answer
        if self._dialog is None:
            return
        page = self._page_of(answer.query)
        if answer.has_ended:
            page.set_busy(False)
            self._show_check(answer)
        elif isinstance(answer.result, str):
            page.show_message(answer.result, "muted")
        else:
            self._dialog.drafts.show_engine(answer.result)

    def _show_check(self, answer: Answer) -> None:
        """Show the end of a query on its page."""
        from decodescope.core import DraftCheck, EngineCheck, NearMisses

        assert self._dialog is not None
        page, was_stopped = self._page_of(answer.query), answer.query.cancel.is_set()
        result = answer.result
        if answer.error is not None and not was_stopped:
            page.show_message(join_sentences(answer.error.cause, answer.error.remedy), "danger")
        elif isinstance(result, EngineCheck) and result.tokens:
            self._dialog.drafts.show_engine(result, was_stopped=was_stopped)
        elif was_stopped or result is None:
            page.show_message(tr("Stopped."), "muted")
        elif isinstance(result, NearMisses):
            self._dialog.near_misses.show_result(result)
        elif isinstance(result, DraftCheck):
            self._dialog.drafts.show_result(result)
        else:
            page.show_message(tr("The engine gave no tokens. Try another prompt."), "muted")

    @Slot()
    def _on_closed(self) -> None:
        self._stop()
        self._dialog, self._query = None, None
