"""The panel of kept runs, made when it is first wanted: lists what the history holds, and does what is asked there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot

from app.control.history import History
from app.control.history_edits import KeptChanges
from app.control.run_navigation import RunNavigation
from app.panels.setup import SetupPanel
from app.state.request_json import RequestProblem, from_plain
from app.state.run import Run
from app.state.worker_messages import report
from app.theme.theme import Theme
from core import words
from core.errors import DecodescopeError
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.panels.history.history_view import HistoryView
    from app.storage.history.history_record import HistoryRecord

NOTHING = mark(
    "Nothing is kept yet. Every run from now on is: its text, its settings and all that was seen of it, on this "
    "machine alone."
)
OFF = mark("No history is kept. It can be switched on in the menu above.")
NOT_FOUND = mark("No kept run holds all of these words.")


class HistoryPanel(QObject):
    """`requestWanted(RunRequest)`: the panels are to take these settings; `compareWanted(Run)`: hold it beside the
    shown one; `shown`: the panel it stands in has to be open; `changed`: a setting has; `runWanted`: something is
    to be run, for there is nothing here yet."""

    requestWanted = Signal(object)
    compareWanted = Signal(object)
    shown = Signal()
    changed = Signal()
    runWanted = Signal()

    def __init__(self, setup: SetupPanel, history: History, changes: KeptChanges, steps: RunNavigation) -> None:
        super().__init__(setup)
        self._setup, self._history, self._changes, self._steps = setup, history, changes, steps
        self._theme: Theme | None = None
        self._marked = ""
        """The id of the run that is shown in the window; empty before there is one."""
        self.view: HistoryView | None = None
        """None until it is first wanted."""
        history.changed.connect(self.refresh)

    @property
    def search(self) -> str | None:
        """What is looked for; None while the history is not to be seen."""
        return self.view.query if self.view is not None and self.view.isVisible() else None

    @Slot()
    def toggle(self) -> None:
        """Show the history in the left panel, or what was there before."""
        if self.view is not None and self.view.isVisible():
            self.close()
        else:
            self.show()

    @Slot()
    def show(self) -> None:
        """Show it, with the cursor in the search."""
        view = self.make()
        self._setup.cover(view)
        self.shown.emit()
        self.refresh()
        view.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def make(self) -> HistoryView:
        """Have it ready, as it is from when it was first shown."""
        if self.view is None:
            self.view = self._make()
            self._setup.add(self.view)
        return self.view

    @Slot()
    def close(self) -> None:
        """Back to prompt and parameters; what was deleted stays so."""
        self._setup.uncover()
        self._changes.settle()

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes, now or once it is there."""
        self._theme = theme
        if self.view is not None:
            self.view.set_theme(theme)

    @Slot()
    def refresh(self) -> None:
        """List what is kept now."""
        view = self.view
        if view is None or not view.isVisible():
            return
        ids = self._history.ask(lambda store: store.ids(view.query), list[str]())
        count, size = self._history.ask(lambda store: store.totals(), (0, 0))
        empty = tr(NOT_FOUND if view.query else NOTHING if self._changes.keeps else OFF)
        total = f"{words.count(count, 'run')} ({words.size(size)})" if count else ""
        view.head.show_keeping(self._changes.keeps)
        view.show_runs(ids, self._records, total, self._history.why_not or empty)
        view.offer("" if ids or self._history.why_not else self._remedy(view))

    def _remedy(self, view: HistoryView) -> str:
        """What fills an empty list."""
        if view.query:
            return tr("Show all runs")
        return tr("Run this prompt") if self._changes.keeps else tr("Keep runs from now on")

    @Slot()
    def _fill(self) -> None:
        """Do that."""
        if self.view is not None and self.view.query:
            self.view.search.clear()
            self.refresh()
        elif self._changes.keeps:
            self.runWanted.emit()
        else:
            self._set_keeping(True)

    def _records(self, runs: Sequence[str]) -> list[HistoryRecord]:
        nothing: list[HistoryRecord] = []
        return self._history.ask(lambda store: store.records(runs), nothing)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Another window may have kept something while this one was not in front."""
        if event.type() == QEvent.Type.WindowActivate and self._history.ask(lambda store: store.has_changed(), False):
            self.refresh()
        return False

    def _make(self) -> HistoryView:
        from app.panels.history.history_view import HistoryView

        view = HistoryView()
        for signal, slot in (
            (view.head.closeWanted, self.close),
            (view.searchChanged, self.refresh),
            (view.openWanted, self._open),
            (view.actionWanted, self._act),
            (view.renameWanted, self._changes.rename),
            (view.foot.undoWanted, self._undo),
            (view.head.backWanted, self._steps.back),
            (view.head.forwardWanted, self._steps.forward),
            (view.head.forgetAllWanted, self._changes.ask_to_forget_all),
            (view.head.keepWanted, self._set_keeping),
            (view.fill.wanted, self._fill),
        ):
            signal.connect(slot)
        self._steps.changed.connect(view.head.show_steps)
        self._changes.deleted.connect(view.foot.show_deleted)
        view.head.show_steps(self._steps.can_go_back, self._steps.can_go_forward)
        self._setup.window().installEventFilter(self)
        if self._theme is not None:
            view.set_theme(self._theme)
        if self._marked:
            view.list.mark(self._marked)
        return view

    @Slot(str)
    def _open(self, run: str) -> None:
        if self._marked != run:
            self._history.show(run)

    @Slot(str, str)
    def _act(self, name: str, run: str) -> None:
        changes = self._changes
        actions = {"restore": self._restore, "compare": self._compare, "pin": changes.pin, "delete": changes.delete}
        actions[name](run)

    def _restore(self, run: str) -> None:
        try:
            self.requestWanted.emit(from_plain(self._history.ask(lambda store: store.request(run), dict[str, Any]())))
        except RequestProblem as error:
            self._history.refused.emit(report(error))
        else:
            self.close()

    def _compare(self, run: str) -> None:
        try:
            self.compareWanted.emit(self._history.open_run(run))
        except DecodescopeError as error:
            self._history.refused.emit(report(error))

    @Slot()
    def _undo(self) -> None:
        run = self._changes.undo()
        if run and self.view is not None:
            self.view.list.pick(run)

    @Slot(bool)
    def _set_keeping(self, is_on: bool) -> None:
        self._changes.set_keeping(is_on)
        self.changed.emit()
        self.refresh()

    @Slot(object)
    def mark(self, run: Run) -> None:
        """That one is shown in the window."""
        self._marked = run.id
        if self.view is not None:
            self.view.list.mark(run.id)
