"""One editor for each kind of setting, all with `value()`, `setValue()` and `edited`; None is shown as `off` or
`auto`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QLineEdit,
    QWidget,
)

from decodescope.app.state import setting_values
from decodescope.app.state.setting_values import LARGEST_INT
from decodescope.app.widgets.inputs import ComboBox, DoubleSpinBox, SpinBox
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr

MAX_DECIMALS = 6


def unset_label(parameter: Parameter) -> str:
    """Return the label for None: `auto` if, according to the help text, another rule then decides; otherwise `off`."""
    return tr("auto") if "unset" in parameter.help.lower() else tr("off")


def _step(parameter: Parameter) -> float:
    return parameter.step or (1 if parameter.kind == "int" else 0.05)


def _decimals(parameter: Parameter) -> int:
    """Return the number of decimals to show: as many as the step has, at least two."""
    text = f"{_step(parameter):.{MAX_DECIMALS}f}".rstrip("0")
    return max(2, len(text.partition(".")[2]))


def editor_minimum(parameter: Parameter) -> float:
    """Return the lowest value of a numeric editor: the minimum, or one step below it to represent None."""
    minimum = parameter.minimum if parameter.minimum is not None else -LARGEST_INT
    step = _step(parameter)
    if parameter.default is not None:
        return minimum + (step if parameter.kind == "int" else 10.0**-MAX_DECIMALS) * parameter.exclusive
    at_minimum = parameter.exclusive or parameter.unset == minimum
    return minimum if at_minimum else minimum - step


if TYPE_CHECKING:
    from decodescope.app.panels.grammar_editor import GrammarEditor
    from decodescope.app.panels.words_editor import WordsEditor

    _Box = QAbstractSpinBox
else:  # Qt classes cannot be combined: the spin box is the second base of the classes below
    _Box = object


class _NumberEditor(_Box):
    """Shared behaviour of integer and decimal spin boxes; mixed in before the Qt class."""

    parameter: Parameter

    def _prepare(self, parameter: Parameter) -> None:
        box: Any = self
        self.parameter = parameter
        box.setObjectName(f"param.{parameter.name}")
        box.setProperty("plain", True)
        box.setAlignment(Qt.AlignmentFlag.AlignRight)
        if parameter.default is None:
            box.setSpecialValueText(unset_label(parameter))

    @property
    def is_unset(self) -> bool:
        """Whether the editor shows the value that represents None."""
        box: Any = self
        return self.parameter.default is None and box.value() == box.minimum()

    def plain_value(self) -> Any:
        """Return the setting's value, None included."""
        box: Any = self
        return None if self.is_unset else box.value()

    def set_plain_value(self, value: Any) -> None:
        """Show `value`; None is shown as the editor's lowest value."""
        box: Any = self
        box.setValue(box.minimum() if value is None else value)

    @property
    def problem(self) -> str:
        """Always empty: a spin box cannot hold an invalid value."""
        return ""

    def sizeHint(self) -> QSize:
        """Return a narrow size, since numbers are short."""
        box: Any = self
        high = super().sizeHint().height()
        return QSize(box.fontMetrics().horizontalAdvance("0") * 9 + 8, high)

    minimumSizeHint = sizeHint


class IntEditor(_NumberEditor, SpinBox):
    """Editor for an integer."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._prepare(parameter)
        high = LARGEST_INT if parameter.maximum is None else parameter.maximum
        self.setRange(int(max(editor_minimum(parameter), -LARGEST_INT)), int(min(high, LARGEST_INT)))
        self.setSingleStep(int(_step(parameter)))
        self.setGroupSeparatorShown(False)
        self.valueChanged.connect(self.edited)


class FloatEditor(_NumberEditor, DoubleSpinBox):
    """Editor for a decimal number; hides trailing zeros and keeps six decimals."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown_decimals = _decimals(parameter)
        self.setDecimals(MAX_DECIMALS)
        self._prepare(parameter)
        high = LARGEST_INT if parameter.maximum is None else parameter.maximum
        self.setRange(editor_minimum(parameter), high)
        self.setSingleStep(_step(parameter))
        self.valueChanged.connect(self.edited)

    def plain_value(self) -> Any:
        """Return the value, rounded to remove binary fraction noise."""
        return None if self.is_unset else round(self.value(), MAX_DECIMALS)

    def textFromValue(self, value: float) -> str:
        text = self.locale().toString(value, "f", MAX_DECIMALS)
        point = self.locale().decimalPoint()
        whole, _, fraction = text.partition(point)
        return f"{whole}{point}{fraction.rstrip('0').ljust(self._shown_decimals, '0')}"


class BoolEditor(QCheckBox):
    """Editor for an on/off setting."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        self.toggled.connect(self.edited)

    def value(self) -> bool:
        """Return whether the box is ticked."""
        return self.isChecked()

    def setValue(self, value: bool) -> None:
        """Tick or untick the box."""
        self.setChecked(bool(value))

    plain_value = value
    set_plain_value = setValue


class ChoiceEditor(ComboBox):
    """Editor for one of several choices; a value from a file that is not in the list is added to it."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        if parameter.default is None:
            self.addItem(unset_label(parameter), None)
        for choice in parameter.choices:
            if choice is not None:
                self.addItem(str(choice), choice)
        self.currentIndexChanged.connect(self.edited)

    def value(self) -> Any:
        """The chosen value."""
        return self.currentData()

    def setValue(self, value: Any) -> None:
        """Choose `value`."""
        for index in range(self.count()):
            if self.itemData(index) == value:
                self.setCurrentIndex(index)
                return
        self.addItem(setting_values.format_text(value), value)
        self.setCurrentIndex(self.count() - 1)

    plain_value = value
    set_plain_value = setValue

    def longest_width(self, font: QFont) -> int:
        """Return the width of the longest choice in pixels."""
        metrics = QFontMetrics(font)
        return max((metrics.horizontalAdvance(self.itemText(index)) for index in range(self.count())), default=0)


class TextEditor(QLineEdit):
    """Editor for one line of text; empty means None where that is the default."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        self._empty = None if parameter.default is None else ""
        self.setPlaceholderText(unset_label(parameter) if parameter.default is None else "")
        self.textChanged.connect(self.edited)

    def value(self) -> str | None:
        """The text."""
        return self.text() or self._empty

    def setValue(self, value: str | None) -> None:
        """Show `value`."""
        self.setText(value or "")

    plain_value = value
    set_plain_value = setValue


class ListEditor(ExactTextEdit):
    """Editor for several lines: strings (`lines`), names (`names`), or token ids and phrases (`tokens`), as a JSON list
    or one per line.
    """

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self._read = _list_parser(parameter)
        self.problem = ""
        self._value: Any = None
        self.setTabChangesFocus(True)
        self.setPlaceholderText(unset_label(parameter))
        self.setFixedHeight(self.fontMetrics().lineSpacing() * 2 + 18)
        self.textChanged.connect(self._on_text)

    def value(self) -> Any:
        """Return the list, or the last valid one while the text is invalid (see `problem`)."""
        return self._value

    def setValue(self, value: Any) -> None:
        """Show `value`. A string is treated as typed text, except for stop strings, where it is one list item."""
        is_one_text = isinstance(value, str) and self._read is setting_values.parse_lines and bool(value)
        self.setPlainText(setting_values.format_text([value] if is_one_text else value))
        self._parse()

    plain_value = value
    set_plain_value = setValue

    @Slot()
    def _on_text(self) -> None:
        self._parse()
        self.edited.emit()

    def _parse(self) -> None:
        try:
            self._value, self.problem = self._read(self.toPlainText()), ""
        except setting_values.InvalidValueError as error:
            self.problem = str(error)


def _list_parser(parameter: Parameter) -> Callable[[str], Any]:
    """Return the parser for the text of a list editor."""
    if parameter.kind == "names":
        return partial(setting_values.parse_names, parameter)
    return setting_values.parse_lines if parameter.kind == "lines" else setting_values.parse_tokens


Editor: TypeAlias = (
    "IntEditor | FloatEditor | BoolEditor | ChoiceEditor | TextEditor | ListEditor | GrammarEditor | WordsEditor"
)
_CLASSES: dict[str, type[Any]] = {
    "int": IntEditor,
    "float": FloatEditor,
    "bool": BoolEditor,
    "choice": ChoiceEditor,
    "text": TextEditor,
    "lines": ListEditor,
    "tokens": ListEditor,
    "names": ListEditor,
}


def _editor_class(kind: str) -> type[Any]:
    if kind == "grammar":
        from decodescope.app.panels.grammar_editor import GrammarEditor  # rarely needed: import on demand

        return GrammarEditor
    if kind in ("words", "word_values"):
        from decodescope.app.panels.words_editor import WordsEditor

        return WordsEditor
    return _CLASSES[kind]


def make_editor(parameter: Parameter, parent: QWidget | None = None) -> Editor:
    """Create the editor for the parameter's kind, showing its default."""
    editor: Editor = _editor_class(parameter.kind)(parameter, parent)
    editor.setAccessibleName(tr(parameter.title))
    editor.setAccessibleDescription(tr(parameter.help))
    with QSignalBlocker(editor):
        editor.set_plain_value(parameter.default)
    return editor
