"""Editor for words, each with a number for a bias: a chip for every word, and the tokens by which it is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.flow_layout import FlowRow, clear_layout
from decodescope.app.widgets.inputs import DoubleSpinBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.core.strategies import Parameter
from decodescope.resources.language import tr

MAX_SHOWN_SPELLINGS = 6
"""Maximum number of token sequences shown for a word."""
_DEFAULT_BIAS = 5.0
_MAX_BIAS = 10_000.0
Spellings = Mapping[str, Sequence[Sequence[str]]]
"""The token sequences of each word, as the texts of their tokens."""


class WordsEditor(QWidget):
    """Editor with the interface of those in `app.panels.editors`, for the kinds `words` and `word_values`."""

    edited = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(f"param.{parameter.name}")
        self.problem = ""
        self.has_values = parameter.kind == "word_values"
        """Whether each word has a number."""
        self._pairs: list[tuple[str, float]] = []
        self._spellings: Spellings = {}
        self.chips = FlowRow(self)
        self.chips.hide()
        self.word = set_up(_WordField(self), accessible_name=tr("Word to add"))
        self.word.setObjectName(f"{self.objectName()}.word")
        self.word.setPlaceholderText(tr("Add a word"))
        self.word.submitted.connect(self.add_word)
        self.word.textChanged.connect(self._enable_button)
        self.value = set_up(DoubleSpinBox(self), accessible_name=tr("Value of the word"))
        self.value.setObjectName(f"{self.objectName()}.value")
        self.value.setRange(-_MAX_BIAS, _MAX_BIAS)
        self.value.setDecimals(1)
        self.value.setValue(_DEFAULT_BIAS)
        self.value.setVisible(self.has_values)
        self.add_button = set_up(QPushButton(tr("Add"), self), role="quiet", clicked=self.add_word)
        self.add_button.setEnabled(False)
        self.found = set_up(WrappedLabel("", self), role="muted")
        self.found.hide()
        line = arrange(
            QHBoxLayout(), *(() if self.has_values else (self.word,)), self.value, self.add_button, margins=0
        )
        line.setSpacing(6)
        line.setStretchFactor(self.value if self.has_values else self.word, 1)
        rows = (self.word, line) if self.has_values else (line,)
        arrange(QVBoxLayout(self), self.chips, *rows, self.found, margins=0, spacing=6)
        self.setFocusProxy(self.word)

    @property
    def words(self) -> tuple[str, ...]:
        """The words in order."""
        return tuple(word for word, _value in self._pairs)

    def plain_value(self) -> Any:
        """Return the setting; None without words."""
        if not self._pairs:
            return None
        return [[word, value] for word, value in self._pairs] if self.has_values else list(self.words)

    def set_plain_value(self, value: Any) -> None:
        """Show `value`."""
        self._pairs = [(one[0], one[1]) if self.has_values else (one, 0.0) for one in value or ()]
        self._show_chips()

    def setValue(self, value: Any) -> None:
        """Show `value` and emit `edited`, as if the user had typed it."""
        self.set_plain_value(value)
        self.edited.emit()

    @Slot()
    def add_word(self) -> None:
        """Add the typed word, or give a word that is there the new value."""
        word = self.word.text()
        if not word.strip():
            return
        value = self.value.value()
        kept = [(one, value if one == word else old) for one, old in self._pairs]
        self._pairs = kept if word in self.words else [*kept, (word, int(value) if value == int(value) else value)]
        self.word.clear()
        self._show_chips()
        self.edited.emit()

    def remove_word(self, word: str) -> None:
        """Remove a word and put it into the field, so that it can be corrected."""
        removed = next((value for one, value in self._pairs if one == word), None)
        if removed is None:
            return
        self._pairs = [pair for pair in self._pairs if pair[0] != word]
        self.word.setText(word)
        self.value.setValue(removed)
        self.word.setFocus(Qt.FocusReason.OtherFocusReason)
        self._show_chips()
        self.edited.emit()

    def show_spellings(self, spellings: Spellings) -> None:
        """Show the token sequences by which the words are found."""
        self._spellings = spellings
        self._show_found()

    @Slot()
    def _enable_button(self) -> None:
        self.add_button.setEnabled(bool(self.word.text().strip()))

    def _show_chips(self) -> None:
        clear_layout(self.chips.flow)
        for word, value in self._pairs:
            number = f" {value:+g}".replace("-", "−") if self.has_values else ""
            chip = set_up(QPushButton(caption(f"{_visible(word)}{number}  ×"), self.chips), role="chip")
            chip.setAccessibleName(tr("Remove {word}").format(word=f"“{word}”{number}"))
            chip.setToolTip(tooltip(tr("Click to remove or change it")))
            chip.setCursor(Qt.CursorShape.PointingHandCursor)
            chip.clicked.connect(lambda _checked=False, word=word: self.remove_word(word))
            self.chips.flow.addWidget(chip)
            chip.show()
        self.chips.setVisible(bool(self._pairs))
        self.chips.updateGeometry()
        self._show_found()

    def _show_found(self) -> None:
        lines = [_spelling_line(word, self._spellings[word]) for word in self.words if word in self._spellings]
        self.found.setText("\n".join(lines))
        self.found.setVisible(bool(lines))


class _WordField(QLineEdit):
    """A line whose Enter key adds the word, and does nothing else in the window."""

    submitted = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Submit the word."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers() & ~_KEYPAD:
            self.submitted.emit()
            event.accept()
            return
        super().keyPressEvent(event)


_KEYPAD = Qt.KeyboardModifier.KeypadModifier


def _visible(word: str) -> str:
    """Return the word with its outer spaces made visible."""
    inner = word.strip(" ")
    before = len(word) - len(word.lstrip(" "))
    return "␣" * before + inner + "␣" * (len(word) - before - len(inner))


def _spelling_line(word: str, spellings: Sequence[Sequence[str]]) -> str:
    """Return a line with the token sequences of a word, their tokens separated by bars."""
    shown = [" | ".join(piece.replace(" ", "␣") for piece in tokens) for tokens in spellings[:MAX_SHOWN_SPELLINGS]]
    more = len(spellings) - len(shown)
    parts = [*shown, *([tr("{count} more").format(count=more)] if more > 0 else [])]
    return f"{_visible(word)}: {',  '.join(parts) or tr('no token')}"
