"""Opens the claim cards, tests a claim on the selected model, and shows the run of an example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.control.requests import ChosenSettings
from decodescope.app.session.queries.base import Answer
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.storage.settings import ComputeSection
from decodescope.core.errors import DecodescopeError, FileNotWrittenError
from decodescope.core.system.file_writing import save_text
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.claims.panel import ClaimDialog
    from decodescope.app.features.claims.session import ClaimQuery
    from decodescope.app.features.claims.store import ClaimStore
    from decodescope.core.claims import ClaimExample, ClaimOutcome, TestedClaim


class ClaimController(QObject):
    """Controls the window of the claim cards. `runRequested(RunRequest)`: the run of an example is to be shown."""

    runRequested = Signal(object)

    def __init__(
        self, parent_window: QWidget, session: Session, chosen: ChosenSettings, loading: ModelLoadController,
        compute: ComputeSection, data: Callable[[], Path],
    ) -> None:  # fmt: skip
        """`data()` returns the user's data folder."""
        super().__init__(parent_window)
        self._parent_window, self._session, self._chosen = parent_window, session, chosen
        self._loading, self._compute, self._data = loading, compute, data
        self._store: ClaimStore | None = None
        self._dialog: ClaimDialog | None = None
        self._query: ClaimQuery | None = None
        """The test in progress; it goes on while the window of the cards is closed."""
        session.answered.connect(self._on_answer)
        chosen.model.changed.connect(self._on_model)

    @property
    def store(self) -> ClaimStore:
        """The outcomes so far, created on first use."""
        if self._store is None:
            from decodescope.app.features.claims.store import ClaimStore

            self._store = ClaimStore(self._data)
        return self._store

    @property
    def is_testing(self) -> bool:
        """Whether a test is in progress."""
        return self._query is not None

    @Slot()
    def open(self) -> ClaimDialog:
        """Open the cards at a claim about the selected strategy."""
        return self.open_subject(f"strategy.{self._chosen.strategy.name}")

    @Slot(str)
    def open_subject(self, subject: str) -> ClaimDialog:
        """Open the cards at the first claim about `strategy.NAME`, `param.NAME` or `cache.NAME`, else at the first."""
        from decodescope.app.features.claims.panel import ClaimDialog
        from decodescope.core import claims

        if self._dialog is None:
            self._dialog = dialog = ClaimDialog(claims.all_claims(), self._parent_window.window())
            dialog.selected.connect(self._show_card)
            dialog.tryRequested.connect(self.start)
            dialog.stopRequested.connect(self.stop)
            dialog.exampleRequested.connect(self._on_example)
            dialog.pageRequested.connect(self._save_page)
            dialog.tableRequested.connect(self._save_table)
            dialog.copyRequested.connect(self._copy)
            dialog.destroyed.connect(self._on_closed)
        found = claims.claims_about(subject)
        self._show_list()
        self._dialog.show_claim(found[0].name if found else "")
        self._show_card(self._dialog.current)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    @Slot(str)
    def start(self, name: str) -> None:
        """Test a claim on the selected model."""
        from decodescope.app.features.claims.session import ClaimQuery

        load = self._loading.request()
        if self._query is not None or not load.model:
            return
        self._query = ClaimQuery(name, self._chosen.drafts.names, load=load)
        self._session.request(self._query)
        self._show_card(name)

    @Slot()
    def stop(self) -> None:
        """Stop the test; the verdict rests on the prompts that are finished."""
        if self._query is not None:
            self._query.cancel.set()

    @Slot()
    def wording_changed(self) -> None:
        """Update the texts after a change of the explanation level."""
        if self._dialog is not None:
            self._dialog.wording_changed()

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        query = self._query
        if query is None or answer.query is not query:
            return
        name = query.claim
        dialog = self._dialog if self._dialog is not None and self._dialog.current == name else None
        if not answer.has_ended:
            if dialog is not None:
                dialog.card.show_progress(answer.result)
                dialog.card.show_outcome(answer.result.outcome, is_final=False)
            return
        self._query = None
        problem = join_sentences(answer.error.cause, answer.error.remedy) if answer.error is not None else ""
        if answer.error is None and answer.result is not None and answer.result.prompts:
            problem = self._keep(name, model_key(query.load), answer.result)
        self._show_list()
        if self._dialog is None:
            return
        self._show_card(self._dialog.current)
        if dialog is not None and problem:
            dialog.card.show_status(problem, "danger", is_announced=True)
        elif dialog is not None and (answer.result is None or not answer.result.prompts):
            dialog.card.show_status(tr("Stopped before the first prompt was finished."), is_announced=True)
        elif dialog is not None and answer.result is not None:
            from decodescope.core import claims

            dialog.card.show_status(claims.verdict_title(answer.result.verdict), is_announced=True)
            dialog.card.show_status("")

    def _keep(self, claim: str, model: str, outcome: ClaimOutcome) -> str:
        """Store an outcome; return what prevents that."""
        try:
            self.store.keep(claim, model, outcome)
        except DecodescopeError as error:
            return join_sentences(error.cause, error.remedy)
        return ""

    def _find(self, name: str) -> ClaimOutcome | None:
        return self.store.find(name, model_key(self._loading.request()))

    def _show_list(self) -> None:
        if self._dialog is not None:
            self._dialog.show_verdicts(self._find)

    @Slot(str)
    def _show_card(self, name: str) -> None:
        """Show the state of a claim: its test, the stored outcome, or neither."""
        if self._dialog is None or not name:
            return
        from decodescope.core import claims

        card, outcome = self._dialog.card, self._find(name)
        model = self._chosen.model.name
        is_own = self._query is not None and self._query.claim == name
        card.show_progress(None, is_waiting=is_own)
        if not is_own:
            busy = tr("Another claim is being tested.") if self._query is not None else ""
            card.show_status(busy or ("" if model else tr("No model is selected.")))
        card.try_button.setEnabled(bool(model) and self._query is None)
        stored = claims.bundled_outcome(name)
        entry = claims.named_claim(name)
        bundled = claims.bundled_text(stored, entry.claim) if stored is not None else ""
        card.show_outcome(outcome, "" if outcome is not None and stored == outcome else bundled)
        self._dialog.enable_export(outcome is not None and not is_own, bool(self._tested()))

    # --- export

    def _tested(self) -> list[TestedClaim]:
        """Return the claims that were tested on the selected model."""
        from decodescope.core import claims

        pairs = ((entry, self._find(entry.name)) for entry in claims.all_claims().values())
        return [(entry, outcome) for entry, outcome in pairs if outcome is not None]

    def _shown(self) -> list[TestedClaim]:
        """Return the shown claim; nothing if it was not tested."""
        current = self._dialog.current if self._dialog is not None else ""
        return [one for one in self._tested() if one[0].name == current]

    @Slot()
    def _save_page(self) -> None:
        from decodescope.core import claims

        if shown := self._shown():
            name = shown[0][0].name.replace("/", "-")
            kinds = tr("Web pages (*.html)")
            self._choose_file(tr("Save web page"), f"{name}.html", kinds, claims.outcome_report(shown))

    @Slot()
    def _save_table(self) -> None:
        from decodescope.app.state.text_formats import to_csv
        from decodescope.core import claims

        table = to_csv(claims.outcome_table(self._tested()))
        self._choose_file(tr("Save table"), "claims.csv", tr("Tables (*.csv)"), table)

    @Slot()
    def _copy(self) -> None:
        from PySide6.QtGui import QGuiApplication

        from decodescope.core import claims

        for entry, outcome in self._shown():
            text = claims.outcome_text(outcome, entry.claim, claims.measure_of(entry.claim))
            QGuiApplication.clipboard().setText(f"{tr(entry.claim.title)}\n{text}\n")

    def _choose_file(self, title: str, name: str, kinds: str, content: str) -> None:
        """Let the user choose a file and write it; show what prevents that on the card."""
        from decodescope.app.widgets.file_dialogs import open_save_dialog

        if self._dialog is not None:
            open_save_dialog(self._dialog, title, name, kinds, lambda path: self._save(content, path))

    def _save(self, content: str, path: str) -> None:
        problem = ""
        try:
            save_text(content, Path(path))
        except FileNotWrittenError as error:
            problem = str(error)
        if self._dialog is not None:
            self._dialog.card.show_status(problem, "danger" if problem else "muted", is_announced=bool(problem))

    @Slot(str, object, bool)
    def _on_example(self, name: str, example: ClaimExample, is_tested: bool) -> None:
        """Run an example in the main window: the same prompt, settings and seed give the same text."""
        from decodescope.core import claims

        entry, outcome = claims.named_claim(name), self._find(name)
        limit = outcome.max_new_tokens if outcome is not None else entry.claim.max_new_tokens
        wanted = claims.example_request(entry.claim, example, is_tested, limit)
        draft = (outcome.draft if outcome is not None else "").split(", ") if wanted["uses_draft"] else []
        request = RunRequest(
            wanted["prompt"], strategy=wanted["strategy"], config=wanted["settings"], cache=wanted["cache"],
            cache_options=wanted["cache_settings"], seed=wanted["seed"], top_n=self._compute.top_n,
            load=self._loading.request(), draft_names=tuple(self._chosen.drafts.names or filter(None, draft)),
        )  # fmt: skip
        self.runRequested.emit(request)

    @Slot()
    def _on_model(self) -> None:
        if self._dialog is not None:
            self._show_list()
            self._show_card(self._dialog.current)

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None


def model_key(load: LoadRequest) -> str:
    """Return the name under which outcomes of a model are kept: other weights are another model."""
    return load.model if load.weights == "auto" else f"{load.model} ({load.weights})"
