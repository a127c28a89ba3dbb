"""Building blocks of the settings forms: rows and editors."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QSpinBox, QVBoxLayout, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.inputs import ComboBox, SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import caption
from decodescope.resources.language import tr


class SettingsForm(QWidget):
    """Form with one row per setting. Emits `changed(section)`."""

    changed = Signal(str)

    def __init__(self, settings: Any) -> None:
        """`settings` is the section that the form edits."""
        super().__init__()
        self._settings = settings
        self.rows = arrange(QFormLayout(self), margins=0)
        self.rows.setHorizontalSpacing(18)

    def add(self, label: str, part: QWidget) -> None:
        """Add a row."""
        part.setMinimumWidth(180)
        self.rows.addRow(label, part)

    def bind(self, part: QComboBox | QSpinBox | QCheckBox, key: str, topic: str) -> None:
        """Store each value chosen in `part` under `key` of the section, then emit `changed(topic)`."""
        match part:
            case QComboBox():
                part.currentIndexChanged.connect(lambda _index: self._store(key, selected_value(part), topic))
            case QSpinBox():
                part.valueChanged.connect(lambda value: self._store(key, value, topic))
            case _:
                part.toggled.connect(lambda on: self._store(key, on, topic))

    def _store(self, key: str, value: object, topic: str) -> None:
        setattr(self._settings, key, value)
        self.changed.emit(topic)


def make_check_box(name: str, title: str, on: bool) -> QCheckBox:
    """Create a check box."""
    box = set_up(QCheckBox(caption(title)), name=name)
    box.setChecked(on)
    return box


def make_combo_box(name: str, label: str, choices: tuple[tuple[str, str], ...], chosen: str) -> QComboBox:
    """Create a combo box of (value, marked title) pairs; an unknown chosen value is added as itself."""
    combo = set_up(ComboBox(), name=name, accessible_name=label)
    for value, title in choices:
        combo.addItem(tr(title), value)
    if combo.findData(chosen) < 0:
        combo.addItem(chosen, chosen)
    combo.setCurrentIndex(combo.findData(chosen))
    return combo


def selected_value(combo: QComboBox) -> str:
    """Return the selected value."""
    return str(combo.currentData())


def make_spin_box(name: str, label: str, value: int, minimum: int = 0, maximum: int = 1024) -> QSpinBox:
    """Create a spin box for an integer."""
    spin = set_up(SpinBox(), name=name, accessible_name=label)
    spin.setRange(minimum, maximum)
    spin.setValue(value)
    return spin


class CheckBoxRemark(Themed, QWidget):
    """A muted remark under a check box, which begins below the box's text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = make_remark(text)
        self._column = arrange(QVBoxLayout(self), self.label, margins=0)

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self._column.setContentsMargins(theme.px(_CHECK_BOX_INDENT), 0, 0, 0)


_CHECK_BOX_INDENT = 28
"""Pixels before the text of a check box: padding, frame and square, and the gap that theme.qss sets."""


def make_remark(text: str) -> WrappedLabel:
    """Create a muted remark."""
    return set_up(WrappedLabel(text), role="muted")
