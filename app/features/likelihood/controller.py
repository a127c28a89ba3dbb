"""Opens the window on likelihoods, sends its queries, and keeps the last results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.requests import RequestBuilder
from decodescope.app.session.session import Session
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.likelihood.panel import LikelihoodDialog
    from decodescope.app.features.likelihood.session import PatternQuery, PosteriorQuery
    from decodescope.app.session.queries.base import Answer
    from decodescope.core.likelihood import PatternProbability, SettingPosterior, TextPattern


class LikelihoodController(QObject):
    """Controls the window. Closing it stops what is computed; results and entries are kept for the next time."""

    def __init__(
        self, parent_window: QWidget, session: Session, requests: RequestBuilder, loading: ModelLoadController
    ) -> None:
        super().__init__(parent_window)
        self._parent_window, self._session, self._requests, self._loading = parent_window, session, requests, loading
        self._dialog: LikelihoodDialog | None = None
        self._pattern: PatternQuery | None = None
        self._posterior: PosteriorQuery | None = None
        self._last_bounds: PatternProbability | None = None
        self._last_posterior: SettingPosterior | None = None
        self._entries: dict[str, Any] = {}
        session.answered.connect(self._on_answered)

    @Slot()
    def open(self) -> LikelihoodDialog:
        """Open the page “How likely is that?”."""
        return self._open("pattern")

    @Slot()
    def open_posterior(self) -> LikelihoodDialog:
        """Open the page “Which settings wrote this?”, with the shown run if nothing was entered."""
        dialog = self._open("posterior")
        if not dialog.posterior.text.toPlainText():
            self._take_run()
        return dialog

    def _open(self, page: str) -> LikelihoodDialog:
        if self._dialog is None:
            self._dialog = self._create()
        dialog = self._dialog
        dialog.show_page(page)
        self._enable_copy()
        dialog.model.setText(self._loading.request().model or tr("No model is selected."))
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        return dialog

    def _create(self) -> LikelihoodDialog:
        from decodescope.app.features.likelihood.panel import LikelihoodDialog

        dialog = LikelihoodDialog(self._parent_window.window())
        pattern, posterior = dialog.pattern, dialog.posterior
        pattern.startWanted.connect(self._start_pattern)
        pattern.stopWanted.connect(self._stop_pattern)
        posterior.startWanted.connect(self._start_posterior)
        posterior.stopWanted.connect(self._stop_posterior)
        posterior.takeRunWanted.connect(self._take_run)
        dialog.copy.clicked.connect(self._copy)
        dialog.pages.currentChanged.connect(self._enable_copy)
        dialog.finished.connect(self._on_closing)
        dialog.destroyed.connect(self._on_closed)
        if entries := self._entries:
            pattern.pattern.setPlainText(entries["pattern"])
            for combo, index in zip((pattern.kind, pattern.place, pattern.tolerance), entries["chosen"], strict=True):
                combo.setCurrentIndex(index)
            posterior.fill(*entries["text"])
        if self._last_bounds is not None:
            pattern.show_result(self._last_bounds, True)
        if self._last_posterior is not None:
            posterior.show_result(self._last_posterior)
        return dialog

    @Slot(object, float, int)
    def _start_pattern(self, patterns: tuple[TextPattern, ...], tolerance: float, limit: int) -> None:
        from decodescope.app.features.likelihood.session import PatternQuery

        dialog, problems = self._dialog, self._requests.problems
        if dialog is None:
            return
        if problems:
            dialog.pattern.show_problem(join_sentences(*problems))
            return
        request = self._requests.current_request()
        dialog.model.setText(request.load.model)
        self._pattern = PatternQuery(request, patterns, tolerance, limit, load=request.load)
        self._last_bounds = None
        dialog.pattern.show_start()
        self._enable_copy()
        self._session.request(self._pattern)

    @Slot()
    def _stop_pattern(self) -> None:
        if self._pattern is not None:
            self._pattern.cancel.set()

    @Slot()
    def _start_posterior(self) -> None:
        from decodescope.app.features.likelihood.session import PosteriorQuery

        dialog, load = self._dialog, self._loading.request()
        if dialog is None:
            return
        page = dialog.posterior
        if not load.model:
            page.show_problem(tr("No model is selected."))
            return
        dialog.model.setText(load.model)
        penalty = page.penalty.value()
        self._posterior = PosteriorQuery(
            page.text.toPlainText(), page.prompt.toPlainText(), page.ids, page.prompt_ids, page.reading.currentData(),
            page.order.currentData(), {"repetition_penalty": penalty} if penalty != 1 else {}, load=load,
        )  # fmt: skip
        self._last_posterior = None
        page.show_start()
        self._enable_copy()
        self._session.request(self._posterior)

    @Slot()
    def _stop_posterior(self) -> None:
        if self._posterior is not None:
            self._posterior.cancel.set()

    @Slot()
    def _take_run(self) -> None:
        """Fill in the shown run: its text, its prompt, and the tokens of both."""
        run = self._session.run
        if self._dialog is None or run is None or not run.tokens or run.is_scored or run.beams is not None:
            return
        prompt_ids = tuple(token.id for token in run.prompt)
        text, prompt = run.text, "".join(token.text for token in run.prompt if not token.special)
        self._dialog.posterior.fill(text, prompt, tuple(token.id for token in run.tokens), prompt_ids)

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if answer.query is self._pattern and self._pattern is not None:
            self._show_pattern(answer)
        elif answer.query is self._posterior and self._posterior is not None:
            self._show_posterior(answer)
        else:
            return
        self._enable_copy()

    @property
    def _shown_result(self) -> PatternProbability | SettingPosterior | None:
        """The last result of the shown page."""
        is_pattern = self._dialog is None or self._dialog.pages.currentWidget() is self._dialog.pattern
        return self._last_bounds if is_pattern else self._last_posterior

    @Slot()
    def _enable_copy(self) -> None:
        if self._dialog is not None:
            self._dialog.copy.setEnabled(self._shown_result is not None)

    @Slot()
    def _copy(self) -> None:
        """Copy the sentences of the shown page, and its table."""
        from PySide6.QtGui import QGuiApplication

        from decodescope.app.state.text_formats import to_csv

        result = self._shown_result
        if self._dialog is None or result is None:
            return
        is_pattern = self._dialog.pages.currentWidget() is self._dialog.pattern
        page = self._dialog.pattern if is_pattern else self._dialog.posterior
        columns = result.columns()
        rows = [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
        QGuiApplication.clipboard().setText(f"{page.sentences.text()}\n\n{to_csv(rows)}")

    def _show_pattern(self, answer: Answer) -> None:
        page = self._dialog.pattern if self._dialog is not None else None
        if answer.result is not None:
            self._last_bounds = answer.result
        if answer.has_ended:
            self._pattern = None
        if page is None:
            return
        if answer.result is not None:
            page.show_result(answer.result, answer.has_ended)
        if answer.has_ended:
            page.show_running(False)
            if answer.error is not None:
                page.show_problem(join_sentences(answer.error.cause, answer.error.remedy))
            elif answer.result is None:
                page.show_problem(tr("It was stopped before it began."))
            announce(page, page.problem.text() or page.headline.text())

    def _show_posterior(self, answer: Answer) -> None:
        page = self._dialog.posterior if self._dialog is not None else None
        if answer.has_ended:
            self._posterior = None
            self._last_posterior = answer.result or self._last_posterior
        if page is None:
            return
        if not answer.has_ended:
            page.show_progress(answer.result)
            return
        page.show_running(False)
        if answer.error is not None:
            page.show_problem(join_sentences(answer.error.cause, answer.error.remedy))
        elif answer.result is None:
            page.show_problem(tr("It was stopped before it began."))
        else:
            page.show_result(answer.result)
        announce(page, page.problem.text() or page.sentences.text())

    @Slot()
    def _on_closing(self) -> None:
        """Stop what is computed, and keep the entries."""
        self._stop_pattern()
        self._stop_posterior()
        if self._dialog is not None:
            pattern, posterior = self._dialog.pattern, self._dialog.posterior
            chosen = tuple(combo.currentIndex() for combo in (pattern.kind, pattern.place, pattern.tolerance))
            self._entries = {
                "pattern": pattern.pattern.toPlainText(), "chosen": chosen,
                "text": (
                    posterior.text.toPlainText(), posterior.prompt.toPlainText(), posterior.ids, posterior.prompt_ids,
                ),
            }  # fmt: skip

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None
