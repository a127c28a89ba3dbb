"""History panel, created on first use: lists the saved runs and carries out the actions there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.features.history.controller.history import History
from decodescope.app.features.history.controller.run_navigation import RunNavigation
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.state.request_json import RequestFormatError, request_from_json
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import make_error_report
from decodescope.app.storage.settings import HistorySection as Kept
from decodescope.app.theme.themed import inherit_theme
from decodescope.core import words
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr, trn

if TYPE_CHECKING:
    from decodescope.app.features.history.panel.history_view import HistoryView
    from decodescope.app.features.history.store.history_record import HistoryRecord


class HistoryEdits(QObject):
    """Edits the history; its dialogs open above `parent_window`. `deleted(name)`: the run that can be
    restored, empty if none.
    """

    deleted = Signal(str)

    def __init__(self, parent_window: QWidget, history: History, settings: Kept) -> None:
        super().__init__(parent_window)
        self._parent_window, self._history, self._settings = parent_window, history, settings
        self._deleted: list[str] = []

    @property
    def is_enabled(self) -> bool:
        """Whether new runs are saved."""
        return self._settings.keep

    def set_enabled(self, is_on: bool) -> None:
        """Save new runs, or stop saving them."""
        self._settings.keep = is_on

    @Slot(str, str)
    def rename(self, run: str, title: str) -> None:
        """Give a run a title."""
        self._history.change(lambda store: store.rename(run, title))

    def pin(self, run: str) -> None:
        """Pin a run, or unpin a pinned one."""
        record = self._history.query(lambda store: store.get(run), None)
        if record is not None:
            self._history.change(lambda store: store.pin(run, not record.pinned))

    def delete(self, run: str) -> None:
        """Remove a run from the list; it can be restored until the list is closed."""
        record = self._history.query(lambda store: store.get(run), None)
        if record is not None:
            self._deleted.append(run)
            self._history.change(lambda store: store.delete(run))
            self.deleted.emit(record.name)

    def undo(self) -> str:
        """Restore the run that was deleted last; return its id, or an empty string."""
        if not self._deleted:
            return ""
        run = self._deleted.pop()
        self._history.change(lambda store: store.restore(run))
        self.deleted.emit("")
        return run

    def commit_deletions(self) -> None:
        """Delete the removed runs permanently."""
        deleted, self._deleted = self._deleted, []
        if deleted:
            self._history.change(lambda store: store.forget(deleted))
        self.deleted.emit("")

    @Slot()
    def confirm_delete_all(self) -> None:
        """Confirm, then delete everything in the history."""
        from decodescope.app.widgets.confirmation import (
            ask,  # imports QMessageBox, which the window's start does not need
        )

        count, size = self._history.query(lambda store: store.totals(), (0, 0))
        question = trn(
            "Delete {count:,} run ({size}), including pinned ones?",
            "Delete {count:,} runs ({size}), including pinned ones?",
            count,
        )
        if not count:
            question = tr("Delete the whole history?")
        ask(
            self._parent_window.window(), "forgetAllQuestion", tr("Delete all"),
            question.format(count=count, size=words.size(size)),
            tr("They are deleted from the disk and cannot be restored. The current run stays open."),
            tr("Delete all"), self.delete_all, is_destructive=True,
        )  # fmt: skip

    @Slot()
    def delete_all(self) -> None:
        """Delete everything in the history."""
        self._deleted.clear()
        self._history.delete_all()
        self.deleted.emit("")


EMPTY_TEXT = mark(
    "No runs saved yet. From now on every run is saved with its text, settings and details, on this computer only."
)
DISABLED_TEXT = mark("History is off. Turn it on in the menu above.")
NO_MATCH_TEXT = mark("No saved run contains all of these words.")


class HistoryPanel(QObject):
    """Controls the history view. `restoreRequested(RunRequest)`: restore these settings; `compareRequested(Run)`:
    compare with the shown run; `shown`: the panel must be open; `changed`: a setting changed; `runRequested`: run the
    prompt, as the history is empty.
    """

    restoreRequested = Signal(object)
    compareRequested = Signal(object)
    shown = Signal()
    changed = Signal()
    runRequested = Signal()

    def __init__(self, setup: SetupPanel, history: History, changes: HistoryEdits, steps: RunNavigation) -> None:
        super().__init__(setup)
        self._setup, self._history, self._edits, self._navigation = setup, history, changes, steps
        self._shown_id = ""
        """The id of the run shown in the window; empty without one."""
        self.view: HistoryView | None = None
        """None until first shown."""
        history.changed.connect(self.refresh)

    @property
    def search_text(self) -> str | None:
        """The search text; None while the history is hidden."""
        return self.view.query if self.view is not None and self.view.isVisible() else None

    @Slot()
    def toggle(self) -> None:
        """Show the history in the left panel, or the previous content."""
        if self.view is not None and self.view.isVisible():
            self.close()
        else:
            self.show()

    @Slot()
    def show(self) -> None:
        """Show the history and focus the search field."""
        view = self.ensure_view()
        self._setup.show_page(view)
        self.shown.emit()
        self.refresh()
        view.search.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def ensure_view(self) -> HistoryView:
        """Create the view if needed and return it."""
        if self.view is None:
            self.view = self._make_view()
            self._setup.add_page(self.view)
            inherit_theme(self.view)
        return self.view

    @Slot()
    def close(self) -> None:
        """Return to prompt and parameters; deletions become permanent."""
        self._setup.show_inputs()
        self._edits.commit_deletions()

    @Slot()
    def refresh(self) -> None:
        """List the saved runs."""
        view = self.view
        if view is None or not view.isVisible():
            return
        ids = self._history.query(lambda store: store.ids(view.query), list[str]())
        count, size = self._history.query(lambda store: store.totals(), (0, 0))
        empty = tr(NO_MATCH_TEXT if view.query else EMPTY_TEXT if self._edits.is_enabled else DISABLED_TEXT)
        total = f"{words.count(count, 'run')} ({words.size(size)})" if count else ""
        view.header.set_history_enabled(self._edits.is_enabled)
        view.show_runs(ids, self._records, total, self._history.unavailable_reason or empty)
        view.set_empty_action("" if ids or self._history.unavailable_reason else self._empty_action_label(view))

    def _empty_action_label(self, view: HistoryView) -> str:
        """Return the button label for an empty list."""
        if view.query:
            return tr("Show all runs")
        return tr("Run this prompt") if self._edits.is_enabled else tr("Save runs from now on")

    @Slot()
    def _run_empty_action(self) -> None:
        """Carry out the action that the button of the empty history offers."""
        if self.view is not None and self.view.query:
            self.view.search.clear()
            self.refresh()
        elif self._edits.is_enabled:
            self.runRequested.emit()
        else:
            self._set_enabled(True)

    def _records(self, runs: Sequence[str]) -> list[HistoryRecord]:
        nothing: list[HistoryRecord] = []
        return self._history.query(lambda store: store.records(runs), nothing)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Refresh when the window is activated and another window changed the history."""
        if event.type() == QEvent.Type.WindowActivate and self._history.query(lambda store: store.has_changed(), False):
            self.refresh()
        return False

    def _make_view(self) -> HistoryView:
        from decodescope.app.features.history.panel.history_view import HistoryView

        view = HistoryView()
        for signal, slot in (
            (view.header.closeRequested, self.close),
            (view.searchChanged, self.refresh),
            (view.openRequested, self._open),
            (view.actionRequested, self._run_action),
            (view.renameRequested, self._edits.rename),
            (view.footer.undoRequested, self._undo),
            (view.header.backRequested, self._navigation.back),
            (view.header.forwardRequested, self._navigation.forward),
            (view.header.forgetAllRequested, self._edits.confirm_delete_all),
            (view.header.keepRequested, self._set_enabled),
            (view.empty_action.fillRequested, self._run_empty_action),
        ):
            signal.connect(slot)
        self._navigation.changed.connect(view.header.set_navigation)
        self._edits.deleted.connect(view.footer.show_deleted)
        view.header.set_navigation(self._navigation.can_go_back, self._navigation.can_go_forward)
        self._setup.window().installEventFilter(self)
        if self._shown_id:
            view.list.mark_shown(self._shown_id)
        return view

    @Slot(str)
    def _open(self, run: str) -> None:
        if self._shown_id != run:
            self._history.show(run)

    @Slot(str, str)
    def _run_action(self, name: str, run: str) -> None:
        changes = self._edits
        actions = {"restore": self._restore, "compare": self._compare, "pin": changes.pin, "delete": changes.delete}
        actions[name](run)

    def _restore(self, run: str) -> None:
        try:
            self.restoreRequested.emit(
                request_from_json(self._history.query(lambda store: store.request(run), dict[str, Any]()))
            )
        except RequestFormatError as error:
            self._history.failed.emit(make_error_report(error))
        else:
            self.close()

    def _compare(self, run: str) -> None:
        try:
            self.compareRequested.emit(self._history.open_run(run))
        except DecodescopeError as error:
            self._history.failed.emit(make_error_report(error))

    @Slot()
    def _undo(self) -> None:
        run = self._edits.undo()
        if run and self.view is not None:
            self.view.list.select(run)

    @Slot(bool)
    def _set_enabled(self, is_on: bool) -> None:
        self._edits.set_enabled(is_on)
        self.changed.emit()
        self.refresh()

    @Slot(object)
    def mark_shown(self, run: Run) -> None:
        """Mark the run that is shown in the window."""
        self._shown_id = run.id
        if self.view is not None:
            self.view.list.mark_shown(run.id)
