"""A form for simple JSON schemas: a row for each field, and the schema is written from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.state.simple_schema import SchemaField, form_problem, to_schema
from app.widgets.dialog import BaseDialog
from app.widgets.inputs import ComboBox, SpinBox
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from resources.language import mark, tr

_KINDS = {
    "string": mark("text"),
    "number": mark("number"),
    "boolean": mark("true or false"),
    "choice": mark("one of these words"),
}
_MAX_TEXT_LENGTH = 10_000
MIN_NAME_CHARACTERS = 12
"""Of a name, and of a limit, that are always shown."""


class SchemaForm(BaseDialog):
    """`schemaAccepted(schema)` with the JSON schema of the form, when it is accepted."""

    schemaAccepted = Signal(object)

    def __init__(self, fields: Sequence[SchemaField], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("schemaForm")
        self.setWindowTitle(tr("Fields of the JSON text"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.rows: list[FieldRow] = []
        self._grid = QGridLayout()
        self._note = WrappedLabel()
        self._note.setProperty("role", "muted")
        self.add_button = QPushButton(tr("Add a field"), self)
        self.add_button.setProperty("role", "quiet")
        self.add_button.clicked.connect(self.add_field)
        self._lay_out()
        for field in fields or (SchemaField(""),):
            self._add(field)
        self._refresh()

    @property
    def fields(self) -> list[SchemaField]:
        """What the rows say."""
        return [row.field for row in self.rows]

    def _lay_out(self) -> None:
        buttons = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(buttons.Ok | buttons.Cancel, self)
        self.buttons.accepted.connect(self._on_ok)
        self.buttons.rejected.connect(self.reject)
        self._content, inner = QWidget(), QVBoxLayout()
        for place, title in enumerate((tr("Name"), tr("Kind"), tr("Longest, or words with commas"), tr("Required"))):
            label = PlainLabel(title, wordWrap=True)
            label.setProperty("role", "muted")
            self._grid.addWidget(label, 0, place)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(2, 1)
        inner.addLayout(self._grid)
        inner.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        inner.addStretch(1)
        self._content.setLayout(inner)
        self._scroll = scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(self._content)
        scroll.setAccessibleName(self.windowTitle())
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        for part in (scroll, self._note, self.buttons):
            column.addWidget(part)
        self.resize(self.fontMetrics().horizontalAdvance("x") * 96, self.fontMetrics().lineSpacing() * 20)

    def showEvent(self, event: QShowEvent) -> None:
        """As wide as its rows, in the type that it is shown in."""
        letters, lines = self.fontMetrics().horizontalAdvance("x"), self.fontMetrics().lineSpacing()
        self._grid.setColumnMinimumWidth(0, MIN_NAME_CHARACTERS * letters)
        self._grid.setColumnMinimumWidth(2, MIN_NAME_CHARACTERS * letters)
        rows = self._content.sizeHint().width() + self._scroll.verticalScrollBar().sizeHint().width()
        margins = self._column.contentsMargins()
        self.resize(max(self.width(), rows + margins.left() + margins.right() + 2), max(self.height(), 16 * lines))
        super().showEvent(event)

    @Slot()
    def add_field(self) -> None:
        """An empty row more, ready to be named."""
        self._add(SchemaField(""))
        self.rows[-1].name.setFocus()
        self._refresh()

    def _add(self, field: SchemaField) -> None:
        row = FieldRow(field, self)
        place = self._grid.rowCount()
        for column, part in enumerate((row.name, row.kind, row.limit, row.required, row.remove)):
            self._grid.addWidget(part, place, column)
        row.changed.connect(self._refresh)
        row.removed.connect(self._on_removed)
        self.rows.append(row)

    @Slot(object)
    def _on_removed(self, row: FieldRow) -> None:
        self.rows.remove(row)
        for part in (row.name, row.kind, row.limit, row.required, row.remove):
            self._grid.removeWidget(part)
            part.hide()
            part.deleteLater()
        row.deleteLater()
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        reason = form_problem(self.fields)
        self._note.setText(reason)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(not reason)

    @Slot()
    def _on_ok(self) -> None:
        schema: Any = to_schema(self.fields)
        self.schemaAccepted.emit(schema)
        self.accept()


class FieldRow(QWidget):
    """The editors of one field; the dialog lays them out in columns, and this one is not seen."""

    changed = Signal()
    removed = Signal(object)

    def __init__(self, field: SchemaField, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()
        self.name, self.kind = QLineEdit(field.name, parent), ComboBox(parent)
        for kind, title in _KINDS.items():
            self.kind.addItem(tr(title), kind)
        self.kind.setCurrentIndex(self.kind.findData(field.kind))
        self.limit = _LimitEditor(field, parent)
        self.required = QCheckBox(parent)
        self.required.setChecked(field.is_required)
        self.remove = QPushButton(tr("Remove"), parent)
        self.remove.setProperty("role", "quiet")
        names = (tr("Name of the field"), tr("Kind of the field"), tr("Required field"))
        for part, name in zip((self.name, self.kind, self.required), names, strict=True):
            part.setAccessibleName(name)
        self.limit.show_kind(field.kind)
        self.name.textChanged.connect(self.changed)
        self.required.toggled.connect(self.changed)
        self.limit.words.textChanged.connect(self.changed)
        self.limit.max_length.valueChanged.connect(self.changed)
        self.kind.currentIndexChanged.connect(self._on_kind)
        self.remove.clicked.connect(self._on_remove)

    @property
    def field(self) -> SchemaField:
        """What the row says."""
        kind, words = self.kind.currentData(), self.limit.words.text().split(",")
        return SchemaField(
            self.name.text().strip(),
            kind,
            self.required.isChecked(),
            self.limit.max_length.value() if kind == "string" else 0,
            tuple(word.strip() for word in words if word.strip()) if kind == "choice" else (),
        )

    @Slot()
    def _on_kind(self) -> None:
        self.limit.show_kind(self.kind.currentData())
        self.changed.emit()

    @Slot()
    def _on_remove(self) -> None:
        self.removed.emit(self)


class _LimitEditor(QWidget):
    """The longest text, or the words of a choice; nothing for other kinds."""

    def __init__(self, field: SchemaField, parent: QWidget) -> None:
        super().__init__(parent)
        self.max_length, self.words = SpinBox(self), QLineEdit(", ".join(field.words), self)
        self.max_length.setRange(0, _MAX_TEXT_LENGTH)
        self.max_length.setSpecialValueText(tr("any length"))
        self.max_length.setValue(field.max_length)
        self.max_length.setAccessibleName(tr("Longest text in characters"))
        self.words.setAccessibleName(tr("Words to choose from"))
        self.words.setPlaceholderText(tr("cat, dog, bird"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.max_length)
        column.addWidget(self.words)

    def show_kind(self, kind: str) -> None:
        """What the kind has a limit of."""
        self.max_length.setVisible(kind == "string")
        self.words.setVisible(kind == "choice")
