"""The panel of the guessing game."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from decodescope.app.panels.bottom_panel import BottomPanel
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.bars import BarList, BarRow
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.plain_text import caption
from decodescope.core import words
from decodescope.resources.language import tr


class GuessPanel(BottomPanel):
    """Panel of the guessing game. Keys 1 to 4 choose, Enter continues, Esc leaves. Probabilities appear only after the
    guess.
    """

    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(gap=8, parent=parent)
        self.setObjectName("guessPanel")
        self.bars = BarList(theme_for("light"), tr("Choices"), self, fits_labels=True)
        self.choices: list[QPushButton] = []
        self.next = self.create_button("guessNext", self.nextRequested, "primary")
        self.leave = self.create_button("guessLeave", self.leaveRequested)
        self._lay_out()

    def show_choices(self, title: str, sentence: str, choices: Sequence[str]) -> None:
        """Offer these words."""
        self._set_texts(title, sentence)
        self.bars.hide()
        self.bars.set_rows(())
        self.next.hide()
        for number, button in enumerate(self.choices):
            button.setVisible(number < len(choices))
            button.setText(caption(f"{number + 1}  {choices[number]}") if number < len(choices) else "")
        self.choices[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def show_result(self, title: str, sentence: str, rows: Sequence[BarRow] = (), next_title: str = "") -> None:
        """Show a result, with bars if there are rows and a Next button if it has a title."""
        self._set_texts(title, sentence)
        for button in self.choices:
            button.hide()
        self.bars.set_rows(rows, widest=words.LONGEST_PERCENT)
        self.bars.setVisible(bool(rows))
        self.next.setText(next_title)
        self.next.setVisible(bool(next_title))
        (self.next if next_title else self.leave).setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose a word with a number key; continue with Enter."""
        number = event.key() - Qt.Key.Key_1
        if 0 <= number < len(self.choices) and self.choices[number].isVisible():
            self.picked.emit(number)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.next.isVisible():
            self.nextRequested.emit()
        else:
            super().keyPressEvent(event)

    def _set_texts(self, title: str, sentence: str) -> None:
        self.setAccessibleName(tr("Guess first"))
        self.leave.setText(tr("Exit"))
        self.title.setText(title)
        self.sentence.set_text(sentence)

    def _lay_out(self) -> None:
        head, row = QHBoxLayout(), QHBoxLayout()
        arrange(head, self.title, STRETCH, self.leave, self.next)
        for number in range(4):
            button = set_up(QPushButton(), name=f"guess{number + 1}")
            button.clicked.connect(lambda _checked=False, number=number: self.picked.emit(number))
            self.choices.append(button)
            row.addWidget(button, 1)
        arrange(self.column, head, self.sentence, row, self.bars)
