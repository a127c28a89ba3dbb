"""What a killed program was writing: found at the next start, and offered."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.control.history import History
from app.control.messages import Messages
from app.state.worker_messages import make_error_report
from core.errors import DecodescopeError
from resources.language import mark, tr, trn

SHOW, FORGET = "showLeftRun", "forgetLeftRuns"
TITLE = mark("A run was cut short")


class Recovery(QObject):
    """Says so in a notice; until one of its buttons is pressed, the recordings stay where they are."""

    def __init__(self, history: History, messages: Messages) -> None:
        super().__init__(messages)
        self._history, self._messages = history, messages
        self._unfinished: dict[str, Path] = {}
        history.opened.connect(self.find_unfinished)
        history.allDeleted.connect(self._delete_unfinished)
        messages.noticeAction.connect(self._on_action)
        self.find_unfinished()

    @Slot()
    def find_unfinished(self) -> None:
        """Look for recordings without a program; those of runs that are kept just had not been put away."""
        store = self._history.store_if_open
        if store is None:
            return
        found = self._history.recordings.claim_abandoned()
        for run, path in found.items():
            if self._history.get(run) is not None:
                with suppress(DecodescopeError):
                    store.move_recording_in(path, run)
            elif _has_events(path):
                self._unfinished[run] = path
        if self._unfinished:
            self._offer()

    def _offer(self) -> None:
        count = len(self._unfinished)
        text = trn(
            "A run was under way when Decodescope was last closed without warning. What had been written is still "
            "there.",
            "{count:,} runs were under way when Decodescope was last closed without warning. What had been written is "
            "still there.",
            count,
        )
        show, forget = trn("Show it", "Show them", count), trn("Forget it", "Forget them", count)
        self._messages.show_notice(text.format(count=count), tr(TITLE), [(SHOW, show), (FORGET, forget)])

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == SHOW:
            self._recover()
        elif name == FORGET:
            self._delete_unfinished()

    @Slot()
    def _delete_unfinished(self) -> None:
        for path in self._unfinished.values():
            with suppress(OSError):
                path.unlink()
        self._unfinished = {}
        self._messages.withdraw_notice(tr(TITLE))

    def _recover(self) -> None:
        """Keep all of them, and show the latest."""
        import core
        from app.state.recorded_run import load_run

        left, self._unfinished = sorted(self._unfinished.items(), key=lambda item: _modified(item[1])), {}
        latest = ""
        for run, path in left:
            try:
                recovered = load_run(core.trace.read(path))
                recovered.id = run
                self._history.save_run(recovered, path)
                latest = run
            except DecodescopeError as error:
                self._history.failed.emit(make_error_report(error))
        if latest:
            self._history.show(latest)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # somebody has removed it; reading it says so
        return 0.0


def _has_events(path: Path) -> bool:
    """Whether a run had begun; a file that has nothing to show is removed."""
    import core
    from core.errors import TraceError

    try:
        if core.trace.read(path).events:
            return True
    except TraceError:
        pass
    with suppress(OSError):
        path.unlink()
    return False
