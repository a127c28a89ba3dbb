"""A narrow column of settings: choices, numbers and checkboxes, with one signal for all changes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QFrame, QScrollArea, QSpinBox, QVBoxLayout, QWidget

from decodescope.app.features.labs.view.scale.device_bars import PartLegend
from decodescope.app.features.labs.view.settings_column import SettingsColumn, lay_out_beside_settings
from decodescope.app.state.glossary_terms import find_term
from decodescope.app.views.base import Excerpt, Table, View
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.inputs import SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import caption
from decodescope.core.labs import scale

FORM_WIDTH = 264
"""Width in pixels at 100 %."""


class ScaleForm(SettingsColumn):
    """Editors have the object name `scale.<name>`; `changed` is emitted when the user or `set_value` changes one."""

    changed = Signal()

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(label, FORM_WIDTH, parent)
        self.column.addStretch(1)
        self._always_enabled: list[QWidget] = []
        self._editors: dict[str, QComboBox | QSpinBox | QCheckBox] = {}

    def add_heading(self, text: str) -> None:
        """Add a heading."""
        self._insert(self.make_heading(text), 10)

    def add_choice(self, name: str, label: str, items: Sequence[tuple[str, str]]) -> QComboBox:
        """Add a choice among `items` (value, title)."""
        combo = self.make_combo()
        for value, title in items:
            combo.addItem(title, value)
        combo.currentIndexChanged.connect(self._on_changed)
        self._add(name, label, combo)
        return combo

    def add_number(self, name: str, label: str, value: int, minimum: int, maximum: int, suffix: str = "") -> QSpinBox:
        """Add an integer from `minimum` to `maximum`."""
        spin = SpinBox(self.page)
        spin.setRange(minimum, maximum)
        spin.setValue(value)
        spin.setSuffix(suffix)
        spin.setGroupSeparatorShown(True)
        spin.valueChanged.connect(self._on_changed)
        self._add(name, label, spin)
        return spin

    def add_checkbox(self, name: str, label: str) -> QCheckBox:
        """Add a checkbox."""
        box = set_up(QCheckBox(caption(label), self.page), name=f"scale.{name}")
        box.toggled.connect(self._on_changed)
        self._editors[name] = box
        self._explain(box, name)
        self._insert(box, 6)
        return box

    def add_widget(self, widget: QWidget) -> None:
        """Add any other widget at the end."""
        self._insert(widget, 4)

    def add_always_enabled(self, widget: QWidget) -> None:
        """Add a widget that stays enabled while the settings are locked."""
        self.add_widget(widget)
        self._always_enabled.append(widget)

    def choice_value(self, name: str) -> str:
        """Return the value of a choice."""
        editor = self._editors[name]
        assert isinstance(editor, QComboBox)
        return str(editor.currentData())

    def number_value(self, name: str) -> int:
        """Return the value of a number."""
        editor = self._editors[name]
        assert isinstance(editor, QSpinBox)
        return editor.value()

    def is_checked(self, name: str) -> bool:
        """Return whether a checkbox is checked."""
        editor = self._editors[name]
        assert isinstance(editor, QCheckBox)
        return editor.isChecked()

    def set_value(self, name: str, value: str | int | bool) -> None:
        """Set a value by name."""
        editor = self._editors[name]
        if isinstance(editor, QComboBox):
            editor.setCurrentIndex(max(0, editor.findData(value)))
        elif isinstance(editor, QSpinBox):
            editor.setValue(int(value))
        else:
            editor.setChecked(bool(value))

    def set_editable(self, on: bool) -> None:
        """Enable or disable all settings."""
        for widget in self.page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            widget.setEnabled(on or widget in self._always_enabled)

    def set_editor_enabled(self, name: str, on: bool) -> None:
        """Enable or disable one setting."""
        self._editors[name].setEnabled(on)

    def _add(self, name: str, label: str, editor: QComboBox | QSpinBox) -> None:
        words = self.editor_label(label, editor, f"scale.{name}")
        self._editors[name] = editor
        self._explain(editor, name)
        self._insert(words, 4)
        self._insert(editor, 0)

    def _explain(self, editor: QWidget, name: str) -> None:
        """Attach the glossary's explanation, if there is one."""
        if find_term(f"control.scale.{name}") is not None:
            add_glossary_tooltip(editor, f"control.scale.{name}")

    def _insert(self, widget: QWidget, spacing: int) -> None:
        place = self.column.count() - 1
        if spacing and place:
            self.column.insertSpacing(place, spacing)
            place += 1
        self.column.insertWidget(place, widget)

    @Slot()
    def _on_changed(self) -> None:
        self.changed.emit()


class ScalePage(View):
    """Base class of the pages of the scale lab: `form` contains the settings, `body` the content."""

    def __init__(self, settings: str, parent: QWidget | None = None) -> None:
        super().__init__("scalePage", parent)
        self.form = ScaleForm(settings, self)
        self.legend = PartLegend(self)
        self.legend.hide()
        self._card = set_up(QFrame(self), role="card")
        inside = arrange(QVBoxLayout(self._card), margins=(14, 10, 14, 10))
        self.sentence = set_up(WrappedLabel("", self._card), name="scaleSentence")
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        inside.addWidget(self.sentence)
        self.body = lay_out_beside_settings(self, self.form, settings)
        self.body.addWidget(self._card)

    def set_sentence(self, text: str) -> None:
        """Set the sentence at the top."""
        self.sentence.setText(text)

    def excerpt(self) -> Excerpt | None:
        """Return the sentence at the top."""
        text = self.sentence.text()
        return Excerpt(text, f"<p>{escape(text, quote=False)}</p>") if text else None


def parts_row(parts: scale.Parts | None) -> list[object]:
    """Return the cells of a table for the bytes of one device, by part and in total; their names without parts."""
    return [*scale.Parts(), "total"] if parts is None else [*parts.values(), parts.total]


def boxes_table(boxes: Sequence[scale.Box]) -> Table:
    """Return a schedule as a table, one row for each piece of work."""
    head = ("device", "start", "stop", "kind", "micro_batch", "version")
    rows = ((box.device + 1, box.start, box.stop, box.kind, box.micro_batch, box.version) for box in boxes)
    return [head, *rows] if boxes else ()


def horizontal_scroll_area(widget: QWidget) -> QScrollArea:
    """Return a scroll area that only scrolls horizontally."""
    scroll = set_up(QScrollArea(), accessible_name=widget.accessibleName())
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(widget)
    return scroll
