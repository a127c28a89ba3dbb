"""What is kept in memory between runs, and what happens when memory ends."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.panels.settings.fields import SettingsForm, make_check_box, make_spin_box
from app.storage.settings import MAX_REUSE_MIB, ComputeSection
from resources.language import tr


class MemorySettings(SettingsForm):
    """Reuse of what earlier runs have read, its budget, and the cheaper cache."""

    def __init__(self, settings: ComputeSection) -> None:
        super().__init__()
        self._settings = settings
        self.reuse = make_check_box("reuseChoice", tr("Reuse what earlier runs have read"), settings.reuse)
        self.reuse.setToolTip(
            tr("A run whose prompt begins like an earlier text starts from the cache that has read it.")
        )
        self.reuse.toggled.connect(self._on_reuse)
        title = tr("Memory for what earlier runs have read")
        self.budget = make_spin_box("reuseBudget", title, settings.reuse_mib, 1, MAX_REUSE_MIB)
        self.budget.setSuffix(" MiB")
        self.budget.setEnabled(settings.reuse)
        self.budget.valueChanged.connect(self._on_budget)
        title = tr("When memory ends, go on with a cheaper cache")
        self.fallback = make_check_box("fallbackChoice", title, settings.memory_fallback)
        self.fallback.setToolTip(tr("Only with one that writes the same text; the window says so when it happens."))
        self.fallback.toggled.connect(self._on_fallback)
        self.rows.addRow(self.reuse)
        self.add(tr("At most"), self.budget)
        self.rows.addRow(self.fallback)

    @Slot(bool)
    def _on_reuse(self, on: bool) -> None:
        self._settings.reuse = on
        self.budget.setEnabled(on)
        self.changed.emit("reuse")

    @Slot(int)
    def _on_budget(self, mib: int) -> None:
        self._settings.reuse_mib = mib
        self.changed.emit("reuse")

    @Slot(bool)
    def _on_fallback(self, on: bool) -> None:
        self._settings.memory_fallback = on
        self.changed.emit("reuse")
