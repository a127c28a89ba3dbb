"""Which runs are kept on disk, and how much of it they may take."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton

from app.panels.settings.fields import SettingsForm, make_check_box, make_spin_box
from app.storage.settings import MAX_HISTORY_MIB, HistorySection
from resources.language import tr


class HistorySettings(SettingsForm):
    """Keeping runs at all, their budget, and the way to forget them."""

    forgetAllRequested = Signal()

    def __init__(self, settings: HistorySection) -> None:
        super().__init__()
        self._settings = settings
        self.keep_box = make_check_box("historyChoice", tr("Keep every run, on this machine alone"), settings.keep)
        self.keep_box.toggled.connect(self._on_keep)
        self.budget = make_spin_box("historyBudget", tr("Disk for kept runs"), settings.budget_mib, 1, MAX_HISTORY_MIB)
        self.budget.setSuffix(" MiB")
        self.budget.setToolTip(tr("When it is spent, the oldest runs that are not pinned go."))
        self.budget.setEnabled(settings.keep)
        self.budget.valueChanged.connect(self._on_budget)
        self.rows.addRow(self.keep_box)
        self.add(tr("At most"), self.budget)
        self.rows.addRow("", self._delete_all_row())

    def _delete_all_row(self) -> QHBoxLayout:
        forget = QPushButton(tr("Forget all…"))
        forget.setObjectName("forgetAllButton")
        forget.clicked.connect(self.forgetAllRequested)
        line = QHBoxLayout()
        line.addWidget(forget)
        line.addStretch(1)
        return line

    @Slot(bool)
    def _on_keep(self, on: bool) -> None:
        self._settings.keep = on
        self.budget.setEnabled(on)
        self.changed.emit("history")

    @Slot(int)
    def _on_budget(self, mib: int) -> None:
        self._settings.budget_mib = mib
        self.changed.emit("history")
