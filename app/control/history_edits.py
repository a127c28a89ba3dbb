"""What a reader changes about kept runs: names, pins, what is deleted, brought back, forgotten; and whether any are."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.history import History
from app.storage.settings import HistorySection as Kept
from core import words
from resources.language import tr, trn


class HistoryEdits(QObject):
    """`deleted(name)`: that run can be brought back; empty: none can. Asks above the window of `over`."""

    deleted = Signal(str)

    def __init__(self, over: QWidget, history: History, settings: Kept) -> None:
        super().__init__(over)
        self._over, self._history, self._settings = over, history, settings
        self._deleted: list[str] = []

    @property
    def is_enabled(self) -> bool:
        """Whether runs are kept from now on."""
        return self._settings.keep

    def set_enabled(self, is_on: bool) -> None:
        """Keep them from now on, or no more."""
        self._settings.keep = is_on

    @Slot(str, str)
    def rename(self, run: str, title: str) -> None:
        """Give a run a title."""
        self._history.change(lambda store: store.rename(run, title))

    def pin(self, run: str) -> None:
        """Pin a run, or a pinned one no more."""
        record = self._history.query(lambda store: store.get(run), None)
        if record is not None:
            self._history.change(lambda store: store.pin(run, not record.pinned))

    def delete(self, run: str) -> None:
        """Out of the list; it can be brought back until the list is closed."""
        record = self._history.query(lambda store: store.get(run), None)
        if record is not None:
            self._deleted.append(run)
            self._history.change(lambda store: store.delete(run))
            self.deleted.emit(record.name)

    def undo(self) -> str:
        """Bring back the run that was deleted last; its id, empty where there is none."""
        if not self._deleted:
            return ""
        run = self._deleted.pop()
        self._history.change(lambda store: store.restore(run))
        self.deleted.emit("")
        return run

    def commit_deletions(self) -> None:
        """What was deleted is removed for good."""
        deleted, self._deleted = self._deleted, []
        if deleted:
            self._history.change(lambda store: store.forget(deleted))
        self.deleted.emit("")

    @Slot()
    def confirm_delete_all(self) -> None:
        """Ask, then remove everything that is kept."""
        from PySide6.QtWidgets import QMessageBox

        count, size = self._history.query(lambda store: store.totals(), (0, 0))
        box = QMessageBox(QMessageBox.Icon.Warning, tr("Forget all"), "", parent=self._over.window())
        box.setObjectName("forgetAllQuestion")
        question = trn(
            "Forget {count:,} run, {size}, pinned ones too?", "Forget {count:,} runs, {size}, pinned ones too?", count
        )
        if not count:
            question = tr("Forget whatever is kept?")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(question.format(count=count, size=words.size(size)))
        box.setInformativeText(
            tr("They are removed from the disk and cannot be brought back. The shown run stays shown.")
        )
        forget = box.addButton(tr("Forget all"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(tr("Keep them"), QMessageBox.ButtonRole.RejectRole))
        forget.clicked.connect(self.delete_all)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    @Slot()
    def delete_all(self) -> None:
        """Remove everything that is kept."""
        self._deleted.clear()
        self._history.delete_all()
        self.deleted.emit("")
