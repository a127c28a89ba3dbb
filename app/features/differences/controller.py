"""Opens the window “Why do they differ?” and compares the runs that are chosen in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.control.requests import RequestBuilder
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core import remote
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.differences.panel import DifferenceDialog
    from decodescope.app.features.differences.session import DifferenceQuery, DraftCheckQuery, NearMissQuery
    from decodescope.app.features.differences.state import RunChoice, SavedRuns
    from decodescope.app.features.differences.view.model_check_pages import CheckPage


class DifferenceController(QObject):
    """Controls the window above `parent_window`. Runs are those of the history, and the shown run."""

    def __init__(
        self, parent_window: QWidget, session: Session, history: SavedRuns, requests: RequestBuilder, model: ModelChoice
    ) -> None:
        super().__init__(parent_window)
        self._requests, self._model = requests, model
        self._parent_window, self._session, self._history = parent_window, session, history
        self._dialog: DifferenceDialog | None = None
        self._runs: list[RunChoice] = []
        self._pair: tuple[int, int] = (0, 0)
        self._query: DifferenceQuery | None = None
        self._has_tried = False
        self._check: NearMissQuery | DraftCheckQuery | None = None
        """The query of the other two pages in progress."""

    @property
    def page(self) -> str:
        """Name of the page that the window shows; empty if it is closed."""
        return self._dialog.tabs.value if self._dialog is not None else ""

    @Slot()
    def open(self) -> DifferenceDialog:
        """Open the window: B is the shown run, or the latest one, and A the one before it."""
        from decodescope.app.features.differences.panel import SIZE, DifferenceDialog

        if self._dialog is None:
            self._dialog = dialog = DifferenceDialog(self._parent_window.window())
            theme = dialog.current_theme
            dialog.resize(theme.px(SIZE[0]), theme.px(SIZE[1]))
            for signal, slot in (
                (dialog.runs.chosen, self._on_chosen), (dialog.runs.tryRequested, self._try_out),
                (dialog.runs.stopRequested, self._stop), (dialog.near_misses.startRequested, self._find_near_misses),
                (dialog.drafts.startRequested, self._check_draft), (dialog.near_misses.stopRequested, self._stop_check),
                (dialog.drafts.stopRequested, self._stop_check),
            ):  # fmt: skip
                signal.connect(slot)
            dialog.destroyed.connect(self._on_closed)
            self._session.answered.connect(self._on_answered)
        self._list_runs()
        self._list_drafts()
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
        load = self._load_of(first) if tries else LoadRequest()
        self._query = DifferenceQuery(first.source, second.source, tries=tries, load=load)
        self._dialog.runs.set_busy(True, tr("Comparing…"))
        self._session.request(self._query)

    def _load_of(self, run: RunChoice) -> LoadRequest:
        """Return the model of a run; empty if it is unknown."""
        if run.load.model:
            return run.load
        from decodescope.app.state.request_json import RequestFormatError, request_from_json

        try:
            saved: dict[str, Any] = self._history.query(lambda store: store.request(run.id), {})
            return request_from_json(saved).load
        except RequestFormatError:
            return LoadRequest()

    @Slot()
    def _stop(self) -> None:
        if self._query is not None:
            self._query.cancel.set()

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if self._dialog is not None and self._check is not None and answer.query is self._check:
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
        if loads[0] != loads[1]:
            return tr("The runs have different models. In Python, pass both to explain_difference.")
        return ""

    # The pages that read a text with two models

    def _list_drafts(self) -> None:
        assert self._dialog is not None
        names = [entry.name for entry in self._model.entries if entry.name != self._model.name]
        self._dialog.drafts.show_choices([(name, name) for name in names])

    def _request(self, page: CheckPage, tokens: int, *, is_greedy: bool) -> RunRequest | None:
        """Return the window's request without drafts, for `tokens` tokens; None if there is a problem, which the page
        shows.
        """
        request = self._requests.current_request()
        problems = self._requests.problems
        if remote.is_address(request.model):
            problems = [tr("An engine returns only some probabilities. Select a model on this computer.")]
        if problems:
            page.show_message(" ".join(problems), "danger")
            return None
        config: dict[str, Any] = {"max_new_tokens": tokens}
        if not is_greedy and request.strategy == "sampling":
            config = {**request.config, **config}
        strategy = "greedy" if is_greedy or request.strategy != "sampling" else "sampling"
        options = request.options if strategy == request.strategy else {}  # greedy search has no options of sampling
        return replace(
            request, strategy=strategy, config=config, options=options, draft_names=(), cache="dynamic",
            cache_options={}, top_n=1,
        )  # fmt: skip

    @Slot(str, int)
    def _find_near_misses(self, change: str, tokens: int) -> None:
        from decodescope.app.features.differences.session import NearMissQuery
        from decodescope.app.features.differences.view.model_check_pages import CACHE, WEIGHTS

        if self._dialog is None:
            return
        page = self._dialog.near_misses
        if (request := self._request(page, tokens, is_greedy=True)) is not None:
            weights = change.removeprefix(WEIGHTS) if change.startswith(WEIGHTS) else ""
            cache = change.removeprefix(CACHE) if change.startswith(CACHE) else ""
            self._start(page, NearMissQuery(request, weights, cache, load=request.load))

    @Slot(str, int)
    def _check_draft(self, name: str, tokens: int) -> None:
        from decodescope.app.features.differences.session import DraftCheckQuery

        if self._dialog is None:
            return
        page = self._dialog.drafts
        if (request := self._request(page, tokens, is_greedy=False)) is not None:
            self._start(page, DraftCheckQuery(replace(request, draft_names=(name,)), load=request.load))

    def _start(self, page: CheckPage, query: NearMissQuery | DraftCheckQuery) -> None:
        self._stop_check()
        self._check = query
        page.set_busy(True)
        page.show_message(tr("Loading the model"), "muted")
        self._session.request(query)

    @Slot()
    def _stop_check(self) -> None:
        if self._check is not None:
            self._check.cancel.set()

    def _on_checked(self, answer: Answer) -> None:
        from decodescope.app.features.differences.session import NearMissQuery

        assert self._dialog is not None
        near, drafts = self._dialog.near_misses, self._dialog.drafts
        page: CheckPage = near if isinstance(answer.query, NearMissQuery) else drafts
        if not answer.has_ended:
            page.show_message(str(answer.result), "muted")
            return
        was_stopped = answer.query.cancel.is_set()
        self._check = None
        page.set_busy(False)
        if answer.error is not None and not was_stopped:
            page.show_message(join_sentences(answer.error.cause, answer.error.remedy), "danger")
        elif was_stopped or answer.result is None:
            page.show_message(tr("Stopped."), "muted")
        elif page is near:
            near.show_result(answer.result)
        else:
            drafts.show_result(answer.result)

    @Slot()
    def _on_closed(self) -> None:
        self._stop()
        self._stop_check()
        self._dialog, self._query, self._check = None, None, None
        self._session.answered.disconnect(self._on_answered)
