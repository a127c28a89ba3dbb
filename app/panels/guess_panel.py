"""The panel of the game: four words to choose from, then what the model thought of them, at last the score."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.bars import Bars
from app.widgets.bars_layout import BarRow
from app.widgets.text_block import TextBlock
from core import words
from resources.language import tr


class GuessPanel(QFrame):
    """Keys 1 to 4 choose, Enter goes on, Esc leaves. Of a probability it knows nothing before `reveal`."""

    picked = Signal(int)
    nextWanted = Signal()
    leaveWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("guessPanel")
        self.setProperty("role", "foot")
        self.title, self.sentence = QLabel(), TextBlock(self, "spoken")
        self.title.setProperty("role", "heading")
        self.bars = Bars(theme_for("light"), tr("Choices"), self, whole_labels=True)
        self.choices: list[QPushButton] = []
        self.next, self.leave = QPushButton(), QPushButton()
        for button, name, role, signal in (
            (self.next, "guessNext", "primary", self.nextWanted),
            (self.leave, "guessLeave", "quiet", self.leaveWanted),
        ):
            button.setObjectName(name)
            button.setProperty("role", role)
            button.clicked.connect(signal)
        self._lay_out()

    def ask(self, title: str, sentence: str, choices: Sequence[str]) -> None:
        """Offer these words."""
        self._say(title, sentence)
        self.bars.hide()
        self.bars.set_rows(())
        self.next.hide()
        for number, button in enumerate(self.choices):
            button.setVisible(number < len(choices))
            button.setText(f"{number + 1}  {choices[number]}" if number < len(choices) else "")
        self.choices[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def tell(self, title: str, sentence: str, rows: Sequence[BarRow] = (), next_title: str = "") -> None:
        """Say something, with bars where there are some, and a way on where there is one."""
        self._say(title, sentence)
        for button in self.choices:
            button.hide()
        self.bars.set_rows(rows, widest=words.WIDEST_PERCENT)
        self.bars.setVisible(bool(rows))
        self.next.setText(next_title)
        self.next.setVisible(bool(next_title))
        (self.next if next_title else self.leave).setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.sentence.refit()
        self.bars.set_theme(theme)
        self._theme = theme
        side = theme.space(16)
        self._column.setContentsMargins(side, theme.space(10), side, theme.space(12))
        self._column.setSpacing(theme.space(8))

    def event(self, event: QEvent) -> bool:
        """Esc in here leaves the game, before it stops a run."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.leaveWanted.emit()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """A number chooses; Enter goes on."""
        number = event.key() - Qt.Key.Key_1
        if 0 <= number < len(self.choices) and self.choices[number].isVisible():
            self.picked.emit(number)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.next.isVisible():
            self.nextWanted.emit()
        else:
            super().keyPressEvent(event)

    def _say(self, title: str, sentence: str) -> None:
        self.setAccessibleName(tr("Guess first"))
        self.leave.setText(tr("Leave"))
        self.title.setText(title)
        self.sentence.set_text(sentence)

    def _lay_out(self) -> None:
        head, row = QHBoxLayout(), QHBoxLayout()
        head.addWidget(self.title)
        head.addStretch(1)
        head.addWidget(self.leave)
        head.addWidget(self.next)
        for number in range(4):
            button = QPushButton()
            button.setObjectName(f"guess{number + 1}")
            button.clicked.connect(lambda _checked=False, number=number: self.picked.emit(number))
            self.choices.append(button)
            row.addWidget(button, 1)
        self._column = QVBoxLayout(self)
        self._column.addLayout(head)
        self._column.addWidget(self.sentence)
        self._column.addLayout(row)
        self._column.addWidget(self.bars)
