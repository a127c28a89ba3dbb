"""What is measured: which model, which one drafts for it, which ways."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QFrame, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.state.terms import found
from app.theme.theme import Theme
from app.views.shared.terms import explain
from core import ModelEntry
from core.labs import speed
from resources.language import tr

WIDTH = 240
"""Pixels at 100 %."""


class SpeedSettings(QScrollArea):
    """`pressed`: the button was, which begins or stops."""

    pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("What is measured"))
        self._page = QWidget(self)
        self._column = QVBoxLayout(self._page)
        self._column.setContentsMargins(0, 0, 12, 0)
        self._column.setSpacing(4)
        self.setWidget(self._page)
        self.model = self._add_choice("speedModel", tr("Model"))
        self.draft = self._add_choice("speedDraft", tr("Model that drafts"))
        self._column.addSpacing(8)
        self._column.addWidget(self._heading(tr("Ways")))
        self.ways = {way: self._add_way(way) for way in speed.WAYS}
        self._column.addSpacing(10)
        self.button = QPushButton(self._page)
        self.button.setObjectName("speedStart")
        self.button.setProperty("role", "primary")
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self.pressed)
        self._column.addWidget(self.button)
        self._column.addStretch(1)
        self.show_running(False)

    @property
    def chosen(self) -> tuple[speed.Way, ...]:
        """The ways that are ticked."""
        return tuple(way for way, box in self.ways.items() if box.isChecked())

    def set_theme(self, theme: Theme) -> None:
        """Take other sizes."""
        self.setFixedWidth(theme.px(WIDTH))

    def show_models(self, entries: Sequence[ModelEntry], chosen: str) -> None:
        """These are on the disk; one that stands already goes on standing, else `chosen`."""
        _fill(self.model, [(entry.title, entry.name) for entry in entries], chosen)
        by_itself = (tr("one that fits, by itself"), "")
        _fill(self.draft, [by_itself, *((entry.title, entry.name) for entry in entries)], "")
        self.fit()

    def show_running(self, on: bool) -> None:
        """While it runs nothing can be set, and the button stops it."""
        self.button.setText(tr("Stop") if on else tr("Measure"))
        for widget in (self.model, self.draft, *self.ways.values()):
            widget.setEnabled(not on)
        self._is_running = on
        self.fit()

    def show_stopping(self) -> None:
        """It was pressed to stop, which takes a moment."""
        self.button.setText(tr("Stopping…"))
        self.button.setEnabled(False)

    def fit(self) -> None:
        """Nothing to measure, or no model: nothing to press."""
        self.button.setEnabled(self._is_running or (bool(self.chosen) and self.model.count() > 0))

    def _add_choice(self, name: str, title: str) -> QComboBox:
        label, combo = QLabel(title, self._page), QComboBox(self._page)
        label.setProperty("role", "muted")
        label.setBuddy(combo)
        combo.setObjectName(name)
        combo.setAccessibleName(title)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(8)
        self._column.addSpacing(4)
        self._column.addWidget(label)
        self._column.addWidget(combo)
        return combo

    def _add_way(self, way: speed.Way) -> QCheckBox:
        box = QCheckBox(tr(speed.TITLES[way]), self._page)
        box.setObjectName(f"speedWay.{way}")
        box.setChecked(True)
        box.toggled.connect(self.fit)
        if found(f"control.speed.{way}") is not None:
            explain(box, f"control.speed.{way}")
        self._column.addSpacing(4)
        self._column.addWidget(box)
        return box

    def _heading(self, title: str) -> QLabel:
        label = QLabel(title.upper(), self._page)
        label.setProperty("role", "heading")
        return label


def _fill(combo: QComboBox, items: Sequence[tuple[str, str]], first: str) -> None:
    standing = combo.currentData() if combo.count() else first
    combo.blockSignals(True)
    combo.clear()
    for title, name in items:
        combo.addItem(title, name)
    place = combo.findData(standing)
    combo.setCurrentIndex(place if place >= 0 else max(0, combo.findData(first)))
    combo.blockSignals(False)
