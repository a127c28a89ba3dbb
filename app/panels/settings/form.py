"""What settings are made of: rows of names and editors, and the editors themselves."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QSpinBox, QWidget

from app.widgets.inputs import ComboBox, SpinBox
from app.widgets.labels import WrappedLabel
from app.widgets.plain_text import caption
from resources.language import tr

FIELD_INSET = 7


class SettingsForm(QWidget):
    """Names and editors, a row each. `changed` names what was set."""

    changed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.rows = QFormLayout(self)
        self.rows.setContentsMargins(0, 0, 0, 0)
        self.rows.setHorizontalSpacing(18)

    def add(self, label: str, part: QWidget) -> None:
        """One row more."""
        part.setMinimumWidth(180)
        self.rows.addRow(label, part)


def make_check_box(name: str, title: str, on: bool) -> QCheckBox:
    """A box to be ticked."""
    box = QCheckBox(caption(title))
    box.setObjectName(name)
    box.setChecked(on)
    return box


def make_combo_box(name: str, label: str, choices: tuple[tuple[str, str], ...], chosen: str) -> QComboBox:
    """One of (value, marked title); a value that is none of them is listed as itself."""
    combo = ComboBox()
    combo.setObjectName(name)
    combo.setAccessibleName(label)
    for value, title in choices:
        combo.addItem(tr(title), value)
    if combo.findData(chosen) < 0:
        combo.addItem(chosen, chosen)
    combo.setCurrentIndex(combo.findData(chosen))
    return combo


def selected_value(combo: QComboBox) -> str:
    """The value that it stands at."""
    return str(combo.currentData())


def make_spin_box(name: str, label: str, value: int, minimum: int = 0, maximum: int = 1024) -> QSpinBox:
    """A whole number between two."""
    spin = SpinBox()
    spin.setObjectName(name)
    spin.setAccessibleName(label)
    spin.setRange(minimum, maximum)
    spin.setValue(value)
    spin.lineEdit().setTextMargins(FIELD_INSET, 0, 0, 0)  # style sheets do not move a spin box's text
    return spin


def make_remark(text: str) -> WrappedLabel:
    """A remark."""
    label = WrappedLabel(text)
    label.setProperty("role", "muted")
    return label
