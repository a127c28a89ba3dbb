"""What is measured: which model, which one drafts for it, which ways."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QWidget

from app.state.glossary_terms import find_term
from app.views.labs.settings import SettingsColumn
from app.views.shared.glossary_link import add_glossary_tooltip
from core import ModelEntry
from core.labs import speed
from resources.language import tr

SETTINGS_WIDTH = 240
"""Pixels at 100 %."""


class SpeedSettings(SettingsColumn):
    """`startStopPressed`: the button was, which begins or stops."""

    startStopPressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What is measured"), SETTINGS_WIDTH, parent)
        self.model = self._add_choice("speedModel", tr("Model"))
        self.draft = self._add_choice("speedDraft", tr("Model that drafts"))
        self.column.addSpacing(8)
        self.column.addWidget(self.make_heading(tr("Ways")))
        self.ways = {way: self._add_way(way) for way in speed.WAYS}
        self.column.addSpacing(10)
        self.button = QPushButton(self.page)
        self.button.setObjectName("speedStart")
        self.button.setProperty("role", "primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self.startStopPressed)
        self.column.addWidget(self.button)
        self.column.addStretch(1)
        self.show_running(False)

    @property
    def chosen(self) -> tuple[speed.Way, ...]:
        """The ways that are ticked."""
        return tuple(way for way, box in self.ways.items() if box.isChecked())

    def show_models(self, entries: Sequence[ModelEntry], chosen: str) -> None:
        """These are on the disk; one that stands already goes on standing, else `chosen`."""
        _fill_combo(self.model, [(entry.title, entry.name) for entry in entries], chosen)
        by_itself = (tr("one that fits, by itself"), "")
        _fill_combo(self.draft, [by_itself, *((entry.title, entry.name) for entry in entries)], "")
        self.update_button()

    def show_running(self, on: bool) -> None:
        """While it runs nothing can be set, and the button stops it."""
        self.button.setText(tr("Stop") if on else tr("Measure"))
        for widget in (self.model, self.draft, *self.ways.values()):
            widget.setEnabled(not on)
        self._is_running = on
        self.update_button()

    def show_stopping(self) -> None:
        """It was pressed to stop, which takes a moment."""
        self.button.setText(tr("Stopping…"))
        self.button.setEnabled(False)

    def update_button(self) -> None:
        """Nothing to measure, or no model: nothing to press."""
        self.button.setEnabled(self._is_running or (bool(self.chosen) and self.model.count() > 0))

    def _add_choice(self, name: str, title: str) -> QComboBox:
        combo = self.make_combo()
        self.column.addSpacing(4)
        self.column.addWidget(self.editor_label(title, combo, name))
        self.column.addWidget(combo)
        return combo

    def _add_way(self, way: speed.Way) -> QCheckBox:
        box = QCheckBox(tr(speed.TITLES[way]), self.page)
        box.setObjectName(f"speedWay.{way}")
        box.setChecked(True)
        box.toggled.connect(self.update_button)
        if find_term(f"control.speed.{way}") is not None:
            add_glossary_tooltip(box, f"control.speed.{way}")
        self.column.addSpacing(4)
        self.column.addWidget(box)
        return box


def _fill_combo(combo: QComboBox, items: Sequence[tuple[str, str]], first: str) -> None:
    current = combo.currentData() if combo.count() else first
    combo.blockSignals(True)
    combo.clear()
    for title, name in items:
        combo.addItem(title, name)
    place = combo.findData(current)
    combo.setCurrentIndex(place if place >= 0 else max(0, combo.findData(first)))
    combo.blockSignals(False)
