"""Preference lab controller: starts and stops training, saves rankings, lists the tuned model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.features.history.controller.history import History
from decodescope.app.features.labs.panel import PreferenceLabDialog
from decodescope.app.features.labs.session import RANKINGS_FILE, PreferenceJobs
from decodescope.app.features.labs.state import LabRequest, Task
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.file_dialogs import open_save_dialog
from decodescope.core import labs
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import tr, trn

if TYPE_CHECKING:
    from decodescope.app.features.history.controller.history import History


class SavedRankings:
    """Saved rankings. All methods raise PreferenceError for invalid rankings and StorageError or OSError on disk
    errors.
    """

    def __init__(self, history: History, file: Path) -> None:
        """`file`: JSON lines read by training; rankings already in it are imported."""
        self._history, self._file = history, file

    def all(self) -> list[labs.preference.Ranking]:
        """Return all rankings, oldest first."""
        saved = self._history.query_or_raise(
            lambda store: store.rankings.all(parse_ranking), list[labs.preference.Ranking]()
        )
        if saved or not self._file.is_file():
            return saved
        earlier = labs.preference.read_rankings(self._file)
        self._append(earlier)
        return earlier

    def add(self, rankings: Sequence[labs.preference.Ranking]) -> None:
        """Add rankings; to the file alone if the history is unavailable."""
        before = self.all()
        self._append(rankings)
        labs.preference.write_rankings(self._file, [*before, *rankings])

    def _append(self, rankings: Sequence[labs.preference.Ranking]) -> None:
        records = [asdict(ranking) for ranking in rankings]
        self._history.query_or_raise(lambda store: store.rankings.add(records), None)


def parse_ranking(values: dict[str, Any]) -> labs.preference.Ranking:
    """Parse a saved ranking. Raises ValueError if it is invalid."""
    try:
        return labs.preference.Ranking(values["prompt"], tuple(values["completions"]), tuple(values["ranks"]))
    except (KeyError, TypeError, DecodescopeError) as error:
        raise ValueError(tr("a saved ranking is invalid: {error}").format(error=error)) from error


class PreferenceController(QObject):
    """Controls one lab window; deleted with it."""

    def __init__(self, window: QWidget, work: PreferenceJobs, model: ModelChoice, history: History) -> None:
        self.lab = PreferenceLabDialog(window)
        super().__init__(self.lab)
        self._rankings = SavedRankings(history, work.folder / RANKINGS_FILE)
        self._work, self._model, view = work, model, self.lab.view
        view.startWanted.connect(work.start)
        view.stopWanted.connect(work.stop)
        view.collect.saveWanted.connect(self._add_rankings)
        view.collect.exportWanted.connect(self._choose_path)
        view.ppo.useWanted.connect(self._use_tuned_model)
        work.started.connect(self._on_started)
        work.arrived.connect(self._on_event)
        work.ended.connect(self._on_ended)
        for task, events in work.events.items():
            view.show_events(task, events)
        self._show_counts()
        self._show_state()

    @Slot(object)
    def _on_started(self, request: LabRequest) -> None:
        self._show_state()
        self.lab.view.show_events(request.task, ())

    @Slot(object, object)
    def _on_event(self, request: LabRequest, _event: object) -> None:
        self.lab.view.show_events(request.task, self._work.events[request.task])

    @Slot(object, object)
    def _on_ended(self, request: LabRequest, error: ErrorReport | None) -> None:
        self._show_state()
        if error is not None:
            self.lab.view.show_error(request.task, error)
        elif request.task in ("sft", "ppo") and request.task in self._work.finished_tasks:
            self._model.add_folder(str(self._work.folder_of(request.task)), select=False)
            announce(self.lab, tr("Training finished."))

    def _show_state(self) -> None:
        request = self._work.current_request
        busy: Task | None = request.task if request is not None else None
        self.lab.view.show_state(self._work.finished_tasks, busy)

    @Slot()
    def _use_tuned_model(self) -> None:
        """Select the tuned model in the main window."""
        self._model.choose(str(self._work.folder_of("ppo")))

    @Slot(str, object)
    def _add_rankings(self, prompt: str, orders: list[list[list[str]]]) -> None:
        try:
            self._rankings.add([labs.preference.ranked(groups, prompt) for groups in orders])
        except (DecodescopeError, OSError) as error:
            self.lab.view.collect.status.setText(str(error))
        self._show_counts()

    def _show_counts(self) -> None:
        try:
            rankings = self._rankings.all()
        except (DecodescopeError, OSError) as error:
            self.lab.view.collect.status.setText(str(error))
            rankings = []
        self.lab.view.collect.show_saved(len(rankings), sum(len(labs.preference.pairs(one)) for one in rankings))

    @Slot()
    def _choose_path(self) -> None:
        kinds = tr("JSON lines (*.jsonl)")
        open_save_dialog(self.lab, tr("Export pairs"), "pairs.jsonl", kinds, self._export)

    @Slot(str)
    def _export(self, path: str) -> None:
        try:
            count = labs.preference.write_pairs(path, self._rankings.all())
            message = trn(
                "{count} pair written to {path}, ready for TRL.",
                "{count} pairs written to {path}, ready for TRL.",
                count,
            ).format(count=count, path=path)
        except (DecodescopeError, OSError) as error:
            message = str(error)
        self.lab.view.collect.status.setText(message)
