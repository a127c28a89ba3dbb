"""The editor of a grammar: which kind, and its text, with what is wrong with it said as one types."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QPushButton, QVBoxLayout, QWidget

import core
from app.state.grammar_text import from_text, to_text
from app.state.simple_schema import from_schema
from app.theme.tabs import tab_distance
from app.widgets.exact_text import ExactTextEdit
from app.widgets.inputs import ComboBox
from core.strategies import Parameter
from resources.language import mark, tr

_TITLES = {
    "json_schema": mark("JSON schema"),
    "regex": mark("Regular expression"),
    "lark": mark("Lark grammar"),
    "choice": mark("One of these texts, one a line"),
}
_INITIAL_TEXTS = {
    "json_schema": '{\n  "type": "object",\n  "properties": {\n    "name": {"type": "string", "maxLength": 20}\n'
    '  },\n  "required": ["name"],\n  "additionalProperties": false\n}',
    "regex": "[A-Z][a-z]+ (is|was) [a-z ]+\\.",
    "lark": 'start: " " name " and " name "."\nname: /[A-Z][a-z]{2,8}/',
    "choice": " yes\n no",
}
"""What a kind begins with, so that there is something to change."""
_LINES = 6


class GrammarEditor(QWidget):
    """Speaks as the editors of `app.panels.editors`; the text is made when the first kind is chosen."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        self._value: Any = None
        self._texts: dict[str, str] = {}
        self._kind = ""
        """What the text shows."""
        self.text: ExactTextEdit | None = None
        self.form_button: QPushButton | None = None
        """Opens a form, for schemas that one can show."""
        self.kinds = _GrammarKindCombo(self)
        self.kinds.setObjectName(f"{parameter.name}Kind")
        self.kinds.setAccessibleName(tr("Kind of grammar"))
        self.kinds.addItem(tr("off"), "")
        for kind in parameter.choices:
            self.kinds.addItem(tr(_TITLES[str(kind)]), kind)
        self.setFocusProxy(self.kinds)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self.kinds)
        self.kinds.currentIndexChanged.connect(self._on_kind)

    def plain_value(self) -> Any:
        """The setting; None where it is off."""
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
        """Show `value`, as if by hand."""
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
        if self.text is not None:
            self.text.setVisible(bool(self._kind))
        self._parse()

    @Slot()
    def open_form(self) -> None:
        """Edit the schema's fields one by one."""
        from app.panels.schema_form import SchemaForm

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
                "" if can_show else tr("This schema says more than a form can show: edit it as text.")
            )

    def _ensure_text(self) -> ExactTextEdit:
        if self.text is None:
            self.text = ExactTextEdit(self)
            self.text.setObjectName(f"{self.objectName()}.text")
            self.text.setAccessibleName(tr("Text of the grammar"))
            self.text.setTabChangesFocus(True)
            self.text.setTabStopDistance(tab_distance(self.text.font()))
            self.text.setProperty("role", "code")
            self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * _LINES + 18)
            self.text.textChanged.connect(self._on_text)
            self._column.addWidget(self.text)
            self.form_button = QPushButton(tr("Edit as a form…"), self)
            self.form_button.setObjectName(f"{self.objectName()}.form")
            self.form_button.setProperty("role", "quiet")
            self.form_button.clicked.connect(self.open_form)
            self._column.addWidget(self.form_button, 0, Qt.AlignmentFlag.AlignLeft)
        return self.text


MIN_VISIBLE_CHARACTERS = 6
"""Of a kind's name that are always shown; the list has it whole."""


class _GrammarKindCombo(ComboBox):
    """The kinds of grammars."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(MIN_VISIBLE_CHARACTERS)
