"""What a killed program was writing: found at the next start, and offered."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.control.history import History
from app.control.messages import Messages
from app.state.worker_messages import report
from core.errors import DecodescopeError
from resources.language import mark, tr, trn

SHOW, FORGET = "showLeftRun", "forgetLeftRuns"
TITLE = mark("A run was cut short")


class Recovery(QObject):
    """Says so in a notice; until one of its buttons is pressed, the recordings stay where they are."""

    def __init__(self, history: History, messages: Messages) -> None:
        super().__init__(messages)
        self._history, self._messages = history, messages
        self._left: dict[str, Path] = {}
        history.opened.connect(self.look)
        history.forgotten.connect(self._forget)
        messages.noticeAction.connect(self._on_action)
        self.look()

    @Slot()
    def look(self) -> None:
        """Look for recordings without a program; those of runs that are kept just had not been put away."""
        store = self._history.store_if_open
        if store is None:
            return
        found = self._history.recordings.left_over()
        for run, path in found.items():
            if self._history.get(run) is not None:
                with suppress(DecodescopeError):
                    store.take_in(path, run)
            elif _holds_something(path):
                self._left[run] = path
        if self._left:
            self._offer()

    def _offer(self) -> None:
        count = len(self._left)
        told = trn(
            "A run was under way when Decodescope was last closed without warning. What had been written is still "
            "there.",
            "{count:,} runs were under way when Decodescope was last closed without warning. What had been written is "
            "still there.",
            count,
        )
        show, forget = trn("Show it", "Show them", count), trn("Forget it", "Forget them", count)
        self._messages.show_notice(told.format(count=count), tr(TITLE), [(SHOW, show), (FORGET, forget)])

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == SHOW:
            self._take_in()
        elif name == FORGET:
            self._forget()

    @Slot()
    def _forget(self) -> None:
        for path in self._left.values():
            with suppress(OSError):
                path.unlink()
        self._left = {}
        self._messages.withdraw_notice(tr(TITLE))

    def _take_in(self) -> None:
        """Keep all of them, and show the latest."""
        import core
        from app.state.recorded_run import run_of

        left, self._left = sorted(self._left.items(), key=lambda item: _modified(item[1])), {}
        latest = ""
        for run, path in left:
            try:
                found = run_of(core.trace.read(path))
                found.id = run
                self._history.keep(found, path)
                latest = run
            except DecodescopeError as error:
                self._history.refused.emit(report(error))
        if latest:
            self._history.show(latest)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # somebody has removed it; reading it says so
        return 0.0


def _holds_something(path: Path) -> bool:
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
