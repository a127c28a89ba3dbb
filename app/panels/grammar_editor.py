"""The editor of a grammar: which kind, and its text, with what is wrong with it said as one types."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

import core
from app.state.grammar_text import of_text, to_text
from app.state.simple_schema import from_schema
from app.theme.tabs import tab_distance
from core.strategies import Parameter
from resources.language import mark, tr

_TITLES = {
    "json_schema": mark("JSON schema"),
    "regex": mark("Regular expression"),
    "lark": mark("Lark grammar"),
    "choice": mark("One of these texts, one a line"),
}
_STARTS = {
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
        self.text: QPlainTextEdit | None = None
        self.form: QPushButton | None = None
        """Opens a form, for schemas that one can show."""
        self.kinds = _Kinds(self)
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
        self._read()
        self.edited.emit()

    def _show_kind(self) -> None:
        self._kind = self.kinds.currentData()
        if self._kind:
            text = self._made_text()
            with QSignalBlocker(text):
                text.setPlainText(self._texts.setdefault(self._kind, _STARTS[self._kind]))
        if self.text is not None:
            self.text.setVisible(bool(self._kind))
        self._read()

    @Slot()
    def open_form(self) -> None:
        """Edit the schema's fields one by one."""
        from app.panels.schema_form import SchemaForm

        form = SchemaForm(from_schema(self._schema()) or (), self.window())
        form.made.connect(self._on_made)
        form.open()

    @Slot(object)
    def _on_made(self, schema: object) -> None:
        assert self.text is not None
        self.text.setPlainText(to_text("json_schema", schema))

    def _schema(self) -> object:
        return self._value.get("json_schema") if self._value else None

    def _read(self) -> None:
        self._value = of_text(self._kind, self._texts[self._kind]) if self._kind else None
        self.problem = core.grammar_problem(self._value) if self._kind else ""
        if self.form is not None:
            self.form.setVisible(self._kind == "json_schema")
            can_show = not self._texts.get("json_schema", "").strip() or from_schema(self._schema()) is not None
            self.form.setEnabled(can_show)
            self.form.setToolTip("" if can_show else tr("This schema says more than a form can show: edit it as text."))

    def _made_text(self) -> QPlainTextEdit:
        if self.text is None:
            self.text = QPlainTextEdit(self)
            self.text.setObjectName(f"{self.objectName()}.text")
            self.text.setAccessibleName(tr("Text of the grammar"))
            self.text.setTabChangesFocus(True)
            self.text.setTabStopDistance(tab_distance(self.text.font()))
            self.text.setProperty("role", "code")
            self.text.setFixedHeight(self.text.fontMetrics().lineSpacing() * _LINES + 18)
            self.text.textChanged.connect(self._on_text)
            self._column.addWidget(self.text)
            self.form = QPushButton(tr("Edit as a form…"), self)
            self.form.setObjectName(f"{self.objectName()}.form")
            self.form.setProperty("role", "quiet")
            self.form.clicked.connect(self.open_form)
            self._column.addWidget(self.form, 0, Qt.AlignmentFlag.AlignLeft)
        return self.text


LEAST_LETTERS = 6
"""Of a kind's name that are always shown; the list has it whole."""


class _Kinds(QComboBox):
    """Lets the wheel scroll the panel."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(LEAST_LETTERS)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
