"""The adapters of the selected model: each with a switch, a strength and a button that removes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope.app.panels.parameter_row import MARGIN
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import arrange, set_role, set_up, show_text
from decodescope.app.widgets.inputs import DoubleSpinBox, Slider
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.core import adapters
from decodescope.resources.language import tr

MAX_SLIDER_STRENGTH = 2.0
"""Right end of the slider; typed strengths may exceed it."""
_STEPS = 100
"""Slider steps per unit of strength."""


class AdapterEntry(NamedTuple):
    """An adapter in the list."""

    path: str
    strength: float = 1.0
    is_on: bool = True


class AdapterRow(Themed, QWidget):
    """One adapter. Emits `changed` when its switch or strength changes, and `removeRequested`."""

    changed = Signal()
    removeRequested = Signal()

    def __init__(self, entry: AdapterEntry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.path, name = entry.path, adapters.adapter_name(entry.path)
        self.setToolTip(tooltip(entry.path))
        self.switch = set_up(QCheckBox(), accessible_name=tr("Use the adapter {name}").format(name=name))
        self.name = ElidedLabel()
        self.name.setText(name)
        self.remove_button = QPushButton("×")
        self.remove_button.setProperty("role", "quiet")
        self.remove_button.setObjectName("removeAdapter")
        self.remove_button.setToolTip(tr("Remove the adapter from the list"))
        self.remove_button.setAccessibleName(tr("Remove the adapter {name}").format(name=name))
        self.slider = Slider(Qt.Orientation.Horizontal, minimum=0, maximum=round(MAX_SLIDER_STRENGTH * _STEPS))
        self.slider.setAccessibleName(tr("Strength of the adapter {name}, slider").format(name=name))
        self.slider.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.strength = DoubleSpinBox(
            decimals=2, minimum=-adapters.MAX_STRENGTH, maximum=adapters.MAX_STRENGTH, singleStep=0.05
        )
        self.strength.setProperty("plain", True)
        self.strength.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.strength.setAccessibleName(tr("Strength of the adapter {name}").format(name=name))
        self.strength.setToolTip(tr("0 is the base model, 1 the adapter as it was trained"))
        self.remark = set_up(WrappedLabel("", self), role="muted")
        self.remark.hide()
        self._lay_out()
        self.switch.toggled.connect(self._on_toggled)
        self.slider.valueChanged.connect(self._on_slider)
        self.strength.valueChanged.connect(self._on_strength)
        self.remove_button.clicked.connect(self.removeRequested)
        self.show_entry(entry)

    @property
    def entry(self) -> AdapterEntry:
        """The adapter with its present strength."""
        return AdapterEntry(self.path, round(self.strength.value(), 2), self.switch.isChecked())

    def show_entry(self, entry: AdapterEntry) -> None:
        """Show this switch and strength; emits nothing."""
        with QSignalBlocker(self):
            self.switch.setChecked(entry.is_on)
            self.strength.setValue(entry.strength)
            self._sync_slider()
            self._update_enabled()

    def show_remark(self, text: str, is_problem: bool = False) -> None:
        """Show what kind of adapter it is, or why it cannot be used; nothing if empty."""
        set_role(self.remark, "warning" if is_problem else "muted")
        show_text(self.remark, text)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(2))
        self.strength.setFixedWidth(theme.px(64))
        self.remark.setFont(theme.font(12))

    def _lay_out(self) -> None:
        head, body = QHBoxLayout(), QHBoxLayout()
        arrange(head, self.switch, (self.name, 1), self.remove_button)
        arrange(body, (self.slider, 1), self.strength)
        self._column = arrange(QVBoxLayout(self), head, body, self.remark, margins=0)

    def _sync_slider(self) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(self.strength.value() * _STEPS))

    def _update_enabled(self) -> None:
        for part in (self.slider, self.strength, self.name):
            part.setEnabled(self.switch.isChecked())

    @Slot(bool)
    def _on_toggled(self, _on: bool) -> None:
        self._update_enabled()
        self.changed.emit()

    @Slot(int)
    def _on_slider(self, position: int) -> None:
        self.strength.setValue(position / _STEPS)

    @Slot(float)
    def _on_strength(self, _value: float) -> None:
        self._sync_slider()
        self.changed.emit()


class AdapterPanel(Themed, QWidget):
    """The list of adapters, hidden while it is empty. Signals: `changed`, and `addRequested` from its button."""

    changed = Signal()
    addRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("adapterPanel")
        heading = set_up(PlainLabel(tr("ADAPTERS")), role="heading")
        add_glossary_tooltip(heading, "lora")
        self.add_button = QPushButton(tr("Add…"))
        self.add_button.setObjectName("addAdapter")
        self.add_button.setProperty("role", "quiet")
        self.add_button.setToolTip(tr("Add a LoRA adapter: a PEFT folder or a GGUF file"))
        self.add_button.clicked.connect(self.addRequested)
        top = arrange(QHBoxLayout(), (heading, 1), self.add_button, margins=0)
        self._column = arrange(QVBoxLayout(self), top, margins=(MARGIN, 0, MARGIN, 0))
        self.rows: list[AdapterRow] = []
        self.hide()

    @property
    def entries(self) -> tuple[AdapterEntry, ...]:
        """All adapters in the list, in order."""
        return tuple(row.entry for row in self.rows)

    def set_entries(self, entries: Sequence[AdapterEntry]) -> None:
        """Show these adapters instead; those already in the list keep their rows and remarks. Emits nothing."""
        known = {row.path: row for row in self.rows}
        before, self.rows = self.rows, []
        for entry in entries:
            row = known.pop(entry.path, None)
            if row is None:
                row = self._new_row(entry)
            else:
                row.show_entry(entry)
            self.rows.append(row)
        for row in set(before).difference(self.rows):
            row.hide()
            self._column.removeWidget(row)
            row.deleteLater()
        for index, row in enumerate(self.rows, 1):  # below the heading
            if self._column.indexOf(row) != index:
                self._column.insertWidget(index, row)
        self.setVisible(bool(entries))
        self.updateGeometry()

    def _new_row(self, entry: AdapterEntry) -> AdapterRow:
        row = AdapterRow(entry, self)
        row.set_theme(self._theme)
        row.changed.connect(self.changed)
        row.removeRequested.connect(self._on_remove)
        return row

    def show_remark(self, path: str, text: str, is_problem: bool = False) -> None:
        """Show a remark below an adapter."""
        for row in self.rows:
            if row.path == path:
                row.show_remark(text, is_problem)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(6))

    @Slot()
    def _on_remove(self) -> None:
        row = self.sender()
        self.set_entries([one.entry for one in self.rows if one is not row])
        self.changed.emit()
