"""The panel of the guessing game."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from decodescope.app.panels.bottom_panel import BottomPanel
from decodescope.app.panels.choice_row import ChoiceRow
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.bars import BarList, BarRow
from decodescope.app.widgets.building import STRETCH, arrange, show_text
from decodescope.core import words
from decodescope.resources.language import tr


class GuessPanel(BottomPanel):
    """Panel of the guessing game. The keys of `ChoiceRow` choose, Enter continues, Esc leaves. Probabilities appear
    only after the guess.
    """

    picked = Signal(int)
    voted = Signal(tuple)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(gap=8, parent=parent)
        self.setObjectName("guessPanel")
        self.bars = BarList(theme_for("light"), tr("Choices"), self, fits_labels=True)
        self.choice_row = ChoiceRow("guess", self)
        self.choice_row.picked.connect(self.picked)
        self.choice_row.voted.connect(self.voted)
        self.next = self.create_button("guessNext", self.nextRequested, "primary")
        self.leave = self.create_button("guessLeave", self.leaveRequested)
        self._lay_out()

    @property
    def choices(self) -> list[QPushButton]:
        """The buttons of the choices."""
        return self.choice_row.buttons

    def show_choices(self, title: str, sentence: str, choices: Sequence[str]) -> None:
        """Offer these words."""
        self._set_texts(title, sentence)
        self.bars.hide()
        self.bars.set_rows(())
        self.next.hide()
        self.choice_row.show_choices(choices)
        self.choice_row.show()
        focused = self if self.choice_row.is_room else self.choices[0]
        focused.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_result(
        self,
        title: str,
        sentence: str,
        rows: Sequence[BarRow] = (),
        next_title: str = "",
        heads: Sequence[str] = (),
    ) -> None:
        """Show a result, with bars if there are rows and a Next button if it has a title; `heads` name the columns."""
        self._set_texts(title, sentence)
        self.choice_row.hide()
        self.bars.set_rows(rows, heads, widest=words.LONGEST_PERCENT)
        self.bars.setVisible(bool(rows))
        show_text(self.next, next_title)
        (self.next if next_title else self.leave).setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose a word or enter hands; continue with Enter."""
        if self.choice_row.press(event.key()):
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.next.isVisible():
            self.nextRequested.emit()
        else:
            super().keyPressEvent(event)

    def _set_texts(self, title: str, sentence: str) -> None:
        self.setAccessibleName(tr("Guess first"))
        self.leave.setText(tr("Exit"))
        self.title.setText(title)
        self.sentence.set_text(sentence)

    def _lay_out(self) -> None:
        head = arrange(QHBoxLayout(), self.title, STRETCH, self.leave, self.next)
        for button in self.choices:
            button.installEventFilter(self)
        arrange(self.column, head, self.sentence, self.choice_row, self.bars)

    def handles_key(self, key: int) -> bool:
        return self.choice_row.handles_key(key)
