"""What is kept in memory between runs, and what happens when memory ends."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.panels.settings.fields import SettingsForm, check, spin
from app.storage.settings import LARGEST_REUSE, Compute
from resources.language import tr


class MemorySettings(SettingsForm):
    """Reuse of what earlier runs have read, its budget, and the cheaper cache."""

    def __init__(self, kept: Compute) -> None:
        super().__init__()
        self._kept = kept
        self.reuse = check("reuseChoice", tr("Reuse what earlier runs have read"), kept.reuse)
        self.reuse.setToolTip(
            tr("A run whose prompt begins like an earlier text starts from the cache that has read it.")
        )
        self.reuse.toggled.connect(self._on_reuse)
        title = tr("Memory for what earlier runs have read")
        self.budget = spin("reuseBudget", title, kept.reuse_mib, 1, LARGEST_REUSE)
        self.budget.setSuffix(" MiB")
        self.budget.setEnabled(kept.reuse)
        self.budget.valueChanged.connect(self._on_budget)
        title = tr("When memory ends, go on with a cheaper cache")
        self.fallback = check("fallbackChoice", title, kept.memory_fallback)
        self.fallback.setToolTip(tr("Only with one that writes the same text; the window says so when it happens."))
        self.fallback.toggled.connect(self._on_fallback)
        self.rows.addRow(self.reuse)
        self.add(tr("At most"), self.budget)
        self.rows.addRow(self.fallback)

    @Slot(bool)
    def _on_reuse(self, on: bool) -> None:
        self._kept.reuse = on
        self.budget.setEnabled(on)
        self.changed.emit("reuse")

    @Slot(int)
    def _on_budget(self, mib: int) -> None:
        self._kept.reuse_mib = mib
        self.changed.emit("reuse")

    @Slot(bool)
    def _on_fallback(self, on: bool) -> None:
        self._kept.memory_fallback = on
        self.changed.emit("reuse")
