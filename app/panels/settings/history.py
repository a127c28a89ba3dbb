"""Which runs are kept on disk, and how much of it they may take."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton

from app.panels.settings.fields import SettingsForm, check, spin
from app.storage.settings import LARGEST_HISTORY, HistorySettingsSection
from resources.language import tr


class HistorySettings(SettingsForm):
    """Keeping runs at all, their budget, and the way to forget them."""

    forgetAllWanted = Signal()

    def __init__(self, kept: HistorySettingsSection) -> None:
        super().__init__()
        self._kept = kept
        self.keep = check("historyChoice", tr("Keep every run, on this machine alone"), kept.keep)
        self.keep.toggled.connect(self._on_keep)
        self.room = spin("historyBudget", tr("Disk for kept runs"), kept.budget_mib, 1, LARGEST_HISTORY)
        self.room.setSuffix(" MiB")
        self.room.setToolTip(tr("When it is spent, the oldest runs that are not pinned go."))
        self.room.setEnabled(kept.keep)
        self.room.valueChanged.connect(self._on_room)
        self.rows.addRow(self.keep)
        self.add(tr("At most"), self.room)
        self.rows.addRow("", self._way_to_forget())

    def _way_to_forget(self) -> QHBoxLayout:
        forget = QPushButton(tr("Forget all…"))
        forget.setObjectName("forgetAllButton")
        forget.clicked.connect(self.forgetAllWanted)
        line = QHBoxLayout()
        line.addWidget(forget)
        line.addStretch(1)
        return line

    @Slot(bool)
    def _on_keep(self, on: bool) -> None:
        self._kept.keep = on
        self.room.setEnabled(on)
        self.changed.emit("history")

    @Slot(int)
    def _on_room(self, mib: int) -> None:
        self._kept.budget_mib = mib
        self.changed.emit("history")
