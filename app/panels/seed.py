"""The seed: locked, every run uses the same one; unlocked, every run draws a new one and shows it."""

from __future__ import annotations

import random

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.storage.settings import MAX_SEED
from app.theme.theme import Theme
from app.widgets.icons import IconButton
from app.widgets.inputs import SpinBox
from app.widgets.plain_text import PlainLabel, tooltip
from resources.language import tr

VISIBLE_DIGITS = 5
"""A drawn seed has at most as many; the editor scrolls for a longer one that was typed."""


class SeedBox(QFrame):
    """A number and a lock in one frame."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("seedBox")
        self.label = PlainLabel(tr("Seed"), self)
        self.spin = SpinBox(self)
        self.spin.setObjectName("seedSpin")
        self.spin.setRange(0, MAX_SEED)
        self.spin.setProperty("plain", True)
        self.spin.setAccessibleName(tr("Seed"))
        self.spin.setToolTip(tr("The same seed and settings give the same tokens"))
        self.label.setBuddy(self.spin)
        self.lock_button = IconButton("unlock", tr("Seed lock"), self, checked_name="lock")
        self.lock_button.setCheckable(True)
        self.spin.valueChanged.connect(self._on_value)
        self.lock_button.toggled.connect(self._on_lock)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 2, 0)
        row.setSpacing(2)
        for part in (self.label, self.spin, self.lock_button):
            row.addWidget(part)
        self._on_lock()

    @property
    def is_locked(self) -> bool:
        """Whether every run uses the same seed."""
        return self.lock_button.isChecked()

    def next_seed(self) -> int:
        """The seed for a run that starts now; shown at once."""
        if not self.is_locked:
            self.spin.setValue(random.SystemRandom().randint(0, 99_999))
        return self.spin.value()

    def set_theme(self, theme: Theme) -> None:
        """One frame around number and lock."""
        self.lock_button.set_theme(theme)
        self.setFixedHeight(theme.px(34))
        figures = self.spin.fontMetrics().horizontalAdvance("0" * VISIBLE_DIGITS)
        self.spin.setFixedWidth(figures + theme.space(18))

    @Slot()
    def _on_value(self) -> None:
        self.changed.emit()

    @Slot()
    def _on_lock(self) -> None:
        words = tr("Locked: every run uses this seed") if self.is_locked else tr("Unlocked: every run draws a new seed")
        self.lock_button.setToolTip(tooltip(words))
        self.lock_button.setAccessibleName(words)
        self.changed.emit()
        self.lock_button.setCursor(Qt.CursorShape.PointingHandCursor)
