"""The preference lab's room in step with what is trained: starts and stops, keeps rankings, lists the tuned model."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.history import History
from app.control.labs.saved_rankings import KeptRankings
from app.control.model_choice import ModelChoice
from app.panels.preference_lab import PreferenceLab
from app.session.labs import MINE_FILE, LabWork
from app.state.labs import LabWish, Task
from app.state.worker_messages import ErrorReport
from app.widgets.accessibility.announcements import announce
from app.widgets.ask_file import ask_where_to_save
from core import labs
from core.errors import DecodescopeError
from resources.language import tr, trn


class PreferenceController(QObject):
    """One opening of the room; goes with it."""

    def __init__(self, window: QWidget, work: LabWork, model: ModelChoice, history: History) -> None:
        self.lab = PreferenceLab(window)
        super().__init__(self.lab)
        self._kept = KeptRankings(history, work.home / MINE_FILE)
        self._work, self._model, view = work, model, self.lab.view
        view.startWanted.connect(work.start)
        view.stopWanted.connect(work.stop)
        view.collect.keepWanted.connect(self._keep)
        view.collect.exportWanted.connect(self._ask_where)
        view.ppo.useWanted.connect(self._use)
        work.began.connect(self._on_began)
        work.arrived.connect(self._on_arrived)
        work.ended.connect(self._on_ended)
        for task, told in work.told.items():
            view.show_events(task, told)
        self._show_kept()
        self._show_state()

    @Slot(object)
    def _on_began(self, wish: LabWish) -> None:
        self._show_state()
        self.lab.view.show_events(wish.task, ())

    @Slot(object, object)
    def _on_arrived(self, wish: LabWish, _event: object) -> None:
        self.lab.view.show_events(wish.task, self._work.told[wish.task])

    @Slot(object, object)
    def _on_ended(self, wish: LabWish, error: ErrorReport | None) -> None:
        self._show_state()
        if error is not None:
            self.lab.view.show_error(wish.task, error)
        elif wish.task in ("sft", "ppo") and wish.task in self._work.done:
            self._model.add_folder(str(self._work.folder_of(wish.task)), chooses=False)
            announce(self.lab, tr("The training is done."))

    def _show_state(self) -> None:
        wish = self._work.wish
        busy: Task | None = wish.task if wish is not None else None
        self.lab.view.show_state(self._work.done, busy)

    @Slot()
    def _use(self) -> None:
        """The tuned model is chosen in the window."""
        self._model.choose(str(self._work.folder_of("ppo")))

    @Slot(str, object)
    def _keep(self, prompt: str, orders: list[list[list[str]]]) -> None:
        try:
            self._kept.add([labs.preference.ranked(groups, prompt) for groups in orders])
        except (DecodescopeError, OSError) as error:
            self.lab.view.collect.status.setText(str(error))
        self._show_kept()

    def _show_kept(self) -> None:
        try:
            kept = self._kept.all()
        except (DecodescopeError, OSError) as error:
            self.lab.view.collect.status.setText(str(error))
            kept = []
        self.lab.view.collect.show_kept(len(kept), sum(len(labs.preference.pairs(one)) for one in kept))

    @Slot()
    def _ask_where(self) -> None:
        kinds = tr("JSON lines (*.jsonl)")
        ask_where_to_save(self.lab, tr("Export the pairs"), "pairs.jsonl", kinds, self._export)

    @Slot(str)
    def _export(self, path: str) -> None:
        try:
            count = labs.preference.write_pairs(path, self._kept.all())
            said = trn(
                "{count} pair written to {path}, as TRL reads it.",
                "{count} pairs written to {path}, as TRL reads them.",
                count,
            ).format(count=count, path=path)
        except (DecodescopeError, OSError) as error:
            said = str(error)
        self.lab.view.collect.status.setText(said)
