"""Grammar editor: the kind of grammar and its text, checked while the user types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from decodescope import core
from decodescope.app.state.text_formats import (
    GRAMMAR_FILES,
    SchemaField,
    form_problem,
    from_schema,
    from_text,
    parse_grammar,
    to_schema,
    to_text,
)
from decodescope.app.theme.theme import tab_distance
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.file_dialogs import open_file_dialog
from decodescope.app.widgets.flow_layout import FlowLayout
from decodescope.app.widgets.inputs import ComboBox, SpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core.strategies import Parameter
from decodescope.resources.language import mark, tr

_TITLES = {
    "json_schema": mark("JSON schema"),
    "regex": mark("Regular expression"),
    "lark": mark("Lark grammar"),
    "gbnf": mark("GBNF (llama.cpp)"),
    "choice": mark("One of these texts, one per line"),
}
_INITIAL_TEXTS = {
    "json_schema": '{\n  "type": "object",\n  "properties": {\n    "name": {"type": "string", "maxLength": 20}\n'
    '  },\n  "required": ["name"],\n  "additionalProperties": false\n}',
    "regex": "[A-Z][a-z]+ (is|was) [a-z ]+\\.",
    "lark": 'start: " " name " and " name "."\nname: /[A-Z][a-z]{2,8}/',
    "gbnf": 'root ::= " " name " and " name "."\nname ::= [A-Z] [a-z]{2,8}',
    "choice": " yes\n no",
}
"""Initial text for each kind, to be changed by the user."""
_LINES = 6


class GrammarEditor(QWidget):
    """Grammar editor with the interface of the editors in `app.panels.editors`; its text field is created with the
    first kind.
    """

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        self._value: Any = None
        self._texts: dict[str, str] = {}
        self._kind = ""
        """Kind shown in the text field."""
        self.text: ExactTextEdit | None = None
        self.form_button: QPushButton | None = None
        """Opens the schema as a form, if a form can show it."""
        self.open_button: QPushButton | None = None
        self.kinds = _GrammarKindCombo(self)
        self.kinds.setObjectName(f"{parameter.name}Kind")
        self.kinds.setAccessibleName(tr("Kind of grammar"))
        self.kinds.addItem(tr("off"), "")
        for kind in parameter.choices:
            self.kinds.addItem(tr(_TITLES[str(kind)]), kind)
        self.setFocusProxy(self.kinds)
        self._column = arrange(QVBoxLayout(self), self.kinds, margins=0, spacing=6)
        self.kinds.currentIndexChanged.connect(self._on_kind)

    def plain_value(self) -> Any:
        """Return the setting, or None if it is off."""
        return self._value

    def set_plain_value(self, value: Any) -> None:
        """Show `value`."""
        kind, content = next(iter(value.items())) if value else ("", None)
        if kind:
            self._texts[kind] = to_text(kind, content)
        with QSignalBlocker(self.kinds):
            self.kinds.setCurrentIndex(max(self.kinds.findData(kind), 0))
        self._show_kind()

    def setValue(self, value: Any) -> None:
        """Show `value` and emit `edited`, as if the user had typed it."""
        self.set_plain_value(value)
        self.edited.emit()

    @Slot()
    def _on_kind(self) -> None:
        self._show_kind()
        self.edited.emit()

    @Slot()
    def _on_text(self) -> None:
        assert self.text is not None
        self._texts[self._kind] = self.text.toPlainText()
        self._parse()
        self.edited.emit()

    def _show_kind(self) -> None:
        self._kind = self.kinds.currentData()
        if self._kind:
            text = self._ensure_text()
            with QSignalBlocker(text):
                text.setPlainText(self._texts.setdefault(self._kind, _INITIAL_TEXTS[self._kind]))
        if self.text is not None and self.open_button is not None:
            self.text.setVisible(bool(self._kind))
            self.open_button.setVisible(bool(self._kind))
        self._parse()

    @Slot()
    def choose_file(self) -> None:
        """Open a file dialog for a grammar."""
        kinds = tr("Grammars ({endings})").format(endings=" ".join(f"*{ending}" for ending in GRAMMAR_FILES))
        open_file_dialog(self.window(), tr("Open grammar"), kinds, self.open_file)

    @Slot(str)
    def open_file(self, path: str) -> None:
        """Use the grammar of a file; show why it cannot be read."""
        try:
            self.setValue(parse_grammar(path))
        except ValueError as error:
            self.problem = str(error)
            self.edited.emit()

    @Slot()
    def open_form(self) -> None:
        """Edit the schema's fields in a form."""

        form = SchemaForm(from_schema(self._schema()) or (), self.window())
        form.schemaAccepted.connect(self._on_schema_edited)
        form.open()

    @Slot(object)
    def _on_schema_edited(self, schema: object) -> None:
        assert self.text is not None
        self.text.setPlainText(to_text("json_schema", schema))

    def _schema(self) -> object:
        return self._value.get("json_schema") if self._value else None

    def _parse(self) -> None:
        self._value = from_text(self._kind, self._texts[self._kind]) if self._kind else None
        self.problem = core.grammar_problem(self._value) if self._kind else ""
        if self.form_button is not None:
            self.form_button.setVisible(self._kind == "json_schema")
            can_show = not self._texts.get("json_schema", "").strip() or from_schema(self._schema()) is not None
            self.form_button.setEnabled(can_show)
            self.form_button.setToolTip(
                "" if can_show else tr("This schema contains more than a form can show. Edit it as text.")
            )

    def _ensure_text(self) -> ExactTextEdit:
        if self.text is None:
            self.text = set_up(ExactTextEdit(self), accessible_name=tr("Grammar text"), role="code")
            self.text.setObjectName(f"{self.objectName()}.text")
            self.text.setTabChangesFocus(True)
            self.text.setTabStopDistance(tab_distance(self.text.font()))
            self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * _LINES + 18)
            self.text.textChanged.connect(self._on_text)
            self._column.addWidget(self.text)
            self.form_button = set_up(QPushButton(tr("Edit as a form…"), self), role="quiet", clicked=self.open_form)
            self.form_button.setObjectName(f"{self.objectName()}.form")
            self.open_button = set_up(QPushButton(tr("Open a file…"), self), role="quiet", clicked=self.choose_file)
            self.open_button.setObjectName(f"{self.objectName()}.open")
            buttons = FlowLayout()  # below each other where the column is narrow
            arrange(buttons, self.open_button, self.form_button)
            self._column.addLayout(buttons)
        return self.text


MIN_VISIBLE_CHARACTERS = 6
"""Number of characters of a kind's name that are always visible; the list shows the full name."""


class _GrammarKindCombo(ComboBox):
    """Selector for the kind of grammar."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(MIN_VISIBLE_CHARACTERS)


_KINDS = {
    "string": mark("text"),
    "number": mark("number"),
    "boolean": mark("true or false"),
    "choice": mark("one of several words"),
}
_MAX_TEXT_LENGTH = 10_000
MIN_NAME_CHARACTERS = 12
"""Number of characters of a name and of a limit that are always visible."""


class SchemaForm(BaseDialog):
    """Form for a JSON schema. Emits `schemaAccepted(schema)` when accepted."""

    schemaAccepted = Signal(object)

    def __init__(self, fields: Sequence[SchemaField], parent: QWidget | None = None) -> None:
        super().__init__(parent, "schemaForm", tr("JSON fields"))
        self.rows: list[FieldRow] = []
        self._grid = QGridLayout()
        self._note = set_up(WrappedLabel(), role="muted")
        self.add_button = set_up(QPushButton(tr("Add a field"), self), role="quiet", clicked=self.add_field)
        self._lay_out()
        for field in fields or (SchemaField(""),):
            self._add(field)
        self._refresh()

    @property
    def fields(self) -> list[SchemaField]:
        """The fields as edited in the rows."""
        return [row.field for row in self.rows]

    def _lay_out(self) -> None:
        buttons = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(buttons.Ok | buttons.Cancel, self)
        self.buttons.accepted.connect(self._on_ok)
        self.buttons.rejected.connect(self.reject)
        self._content, inner = QWidget(), QVBoxLayout()
        for place, title in enumerate(
            (tr("Name"), tr("Type"), tr("Max. length, or comma-separated words"), tr("Required"))
        ):
            label = set_up(PlainLabel(title, wordWrap=True), role="muted")
            self._grid.addWidget(label, 0, place)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(2, 1)
        arrange(inner, self._grid, (self.add_button, 0, Qt.AlignmentFlag.AlignLeft), STRETCH)
        self._content.setLayout(inner)
        self._scroll = scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(self._content)
        scroll.setAccessibleName(self.windowTitle())
        self._column = arrange(
            QVBoxLayout(self), scroll, self._note, self.buttons, margins=(20, 16, 20, 16), spacing=12
        )
        self.resize(self.fontMetrics().horizontalAdvance("x") * 96, self.fontMetrics().lineSpacing() * 20)

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the width to the rows in the font that is actually used."""
        letters, lines = self.fontMetrics().horizontalAdvance("x"), self.fontMetrics().lineSpacing()
        self._grid.setColumnMinimumWidth(0, MIN_NAME_CHARACTERS * letters)
        self._grid.setColumnMinimumWidth(2, MIN_NAME_CHARACTERS * letters)
        rows = self._content.sizeHint().width() + self._scroll.verticalScrollBar().sizeHint().width()
        margins = self._column.contentsMargins()
        self.resize(max(self.width(), rows + margins.left() + margins.right() + 2), max(self.height(), 16 * lines))
        super().showEvent(event)

    @Slot()
    def add_field(self) -> None:
        """Add an empty row and focus its name."""
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
    """Editors of one field; the dialog lays them out in columns, and this widget stays hidden."""

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
        self.remove = set_up(QPushButton(tr("Remove"), parent), role="quiet")
        names = (tr("Field name"), tr("Field type"), tr("Required field"))
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
        """The field as edited in this row."""
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
    """Editor for the maximum length of a text or the words of a choice; empty for other types."""

    def __init__(self, field: SchemaField, parent: QWidget) -> None:
        super().__init__(parent)
        self.max_length, self.words = SpinBox(self), QLineEdit(", ".join(field.words), self)
        self.max_length.setRange(0, _MAX_TEXT_LENGTH)
        self.max_length.setSpecialValueText(tr("any length"))
        self.max_length.setValue(field.max_length)
        self.max_length.setAccessibleName(tr("Maximum length in characters"))
        self.words.setAccessibleName(tr("Words to choose from"))
        self.words.setPlaceholderText(tr("cat, dog, bird"))
        arrange(QVBoxLayout(self), self.max_length, self.words, margins=0)

    def show_kind(self, kind: str) -> None:
        """Show the limit that applies to this type."""
        self.max_length.setVisible(kind == "string")
        self.words.setVisible(kind == "choice")
