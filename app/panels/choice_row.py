"""Choices with letters, of which one person picks one, or for each of which the raised hands of a room are entered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.room_votes import LETTERS
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.bars import BarRow
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.resources.language import tr, trn

MAX_DIGITS = 3
"""Digits of a number of hands."""
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
VOTE_KEYS = (*map(str, range(10)), *LETTERS, "Backspace", "Return", "Enter")
"""Keys that the row handles, as key sequences; the presentation binds them, because there the row has no focus."""


class ChoiceRow(Themed, QWidget):
    """A row of up to four choices. `picked(number)`: one of them; `voted(counts)`: the hands of a room for each.

    Keys for one person: A to D, or 1 to 4. For a room: digits enter the hands of the outlined choice, Enter goes on to
    the next one and counts after the last, Backspace deletes, a letter goes to its choice.
    """

    picked = Signal(int)
    voted = Signal(tuple)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        """`name`: start of the object names of the buttons."""
        super().__init__(parent)
        self.buttons: list[QPushButton] = []
        self.counts: list[PlainLabel] = []
        self._texts: tuple[str, ...] = ()
        self._digits = [""] * len(LETTERS)
        self._active = 0
        self.is_room = False
        """Whether the hands of a room are entered."""
        self.hint = set_up(WrappedLabel("", self), role="muted")
        row = QHBoxLayout()
        for number in range(len(LETTERS)):
            button = set_up(QPushButton(self), name=f"{name}{number + 1}")
            button.clicked.connect(partial(self._on_clicked, number))
            count = set_up(PlainLabel("", self), name=f"{name}Count{number + 1}", role="voteCount")
            count.setAlignment(Qt.AlignmentFlag.AlignCenter)
            self.buttons.append(button)
            self.counts.append(count)
            row.addLayout(arrange(QVBoxLayout(), button, count, margins=0, spacing=4), 1)
        self._column = arrange(QVBoxLayout(self), row, self.hint, margins=0)

    @property
    def votes(self) -> tuple[int, ...]:
        """Hands entered so far, one number for each choice."""
        return tuple(int(digits or 0) for digits in self._digits[: len(self._texts)])

    def show_choices(self, texts: Sequence[str]) -> None:
        """Offer these choices, without hands."""
        self._texts = tuple(texts)
        self._digits = [""] * len(LETTERS)
        self._active = 0
        for number, button in enumerate(self.buttons):
            button.setVisible(number < len(texts))
            button.setText(caption(f"{LETTERS[number]}  {texts[number]}") if number < len(texts) else "")
        self._show_counts()

    def set_room(self, is_room: bool) -> None:
        """Count the hands of a room, or let one person choose."""
        self.is_room = is_room
        self._show_counts()

    def handles_key(self, key: int) -> bool:
        """Return whether the row handles this key now."""
        if not self._texts or self.isHidden():
            return False
        letter = key - Qt.Key.Key_A
        digit = key - Qt.Key.Key_0
        if 0 <= letter < len(self._texts):
            return True
        if self.is_room:
            return 0 <= digit <= 9 or key in (*_ENTER, Qt.Key.Key_Backspace)
        return 1 <= digit <= len(self._texts)

    def press(self, key: int) -> bool:
        """Handle a key; return False if it is not one of the row's."""
        if not self.handles_key(key):
            return False
        letter, digit = key - Qt.Key.Key_A, key - Qt.Key.Key_0
        if not self.is_room:
            self.picked.emit(letter if letter >= 0 else digit - 1)
        elif 0 <= letter < len(self._texts):
            self._activate(letter)
        elif key in _ENTER:
            self.confirm()
        elif key == Qt.Key.Key_Backspace:
            self._delete()
        else:
            self._enter(str(digit))
        return True

    @Slot()
    def confirm(self) -> None:
        """Go on to the next choice; after the last one, count the hands."""
        if self._active + 1 < len(self._texts):
            self._activate(self._active + 1)
        else:
            self.voted.emit(self.votes)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.space(6))
        self._style_counts(theme)

    def _on_clicked(self, number: int) -> None:
        if self.is_room:
            self._activate(number)
        else:
            self.picked.emit(number)

    def _activate(self, number: int) -> None:
        self._active = number
        self._show_counts()
        announce(self, self.counts[number].accessibleName())

    def _enter(self, digit: str) -> None:
        digits = (self._digits[self._active] + digit).lstrip("0") or "0"
        if len(digits) <= MAX_DIGITS:
            self._digits[self._active] = digits
        self._show_counts()

    def _delete(self) -> None:
        """Delete the last digit, or go back to the choice before."""
        if self._digits[self._active]:
            self._digits[self._active] = self._digits[self._active][:-1]
        else:
            self._active = max(0, self._active - 1)
        self._show_counts()

    def _show_counts(self) -> None:
        for number, count in enumerate(self.counts):
            is_shown = self.is_room and number < len(self._texts)
            count.setVisible(is_shown)
            if is_shown:
                count.setText(self._digits[number] or "–")
                hands = hands_text(int(self._digits[number] or 0))
                count.setAccessibleName(f"{LETTERS[number]}: {hands}")
        self.hint.setVisible(self.is_room)
        keys = tr("Type the hands for {letter}, then press Enter.").format(letter=LETTERS[self._active])
        self.hint.setText(f"{keys}  {tr('All hands: {count}').format(count=sum(self.votes))}")
        self._style_counts(self.current_theme)

    def _style_counts(self, theme: Theme) -> None:
        for number, count in enumerate(self.counts):
            is_active = number == self._active
            count.setStyleSheet(
                f"font-size: {theme.font_pixels(18)}px; font-weight: 600; padding: {theme.px(2)}px; "
                f"border: {theme.px(2)}px solid {theme.accent if is_active else theme.line}; "
                f"border-radius: {theme.px(6)}px; color: {theme.text};"
            )


def hands_text(count: int) -> str:
    """Return a number of hands in words."""
    return trn("{count} hand", "{count} hands", count).format(count=count)


def choice_bars(
    texts: Sequence[str],
    answer: int | None,
    votes: Sequence[int],
    is_room: bool,
    shares: Sequence[tuple[float, str]] = (),
) -> tuple[list[BarRow], tuple[str, ...]]:
    """Return the rows and heads of the choices afterwards.

    `answer` is the index of the right one; `votes` are hands, or 1 for the guess of one person; `shares` are the
    model's probabilities and their texts, empty where it gives none. A room and the model are side by side: the upper
    bar is the room's, the lower one the model's.
    """
    total, rows = sum(votes), []
    has_room = is_room and total > 0
    for number, text in enumerate(texts):
        lengths: list[float] = []
        figures: list[str] = []
        if has_room:
            lengths.append(votes[number] / total)
            figures.append(str(votes[number]))
        if shares:
            lengths.append(shares[number][0])
            figures.append(shares[number][1])
        is_own = not is_room and number < len(votes) and votes[number] > 0
        tip = tr("Your guess") if is_own else ""
        label = f"{'✓' if number == answer else '·'} {LETTERS[number]}  {text}{f' ({tip})' if tip else ''}"
        rows.append(BarRow(label, tuple(lengths), tuple(figures), strong=number == answer, tip=tip))
    heads = ((tr("Room"),) if has_room else ()) + ((tr("Model"),) if shares and has_room else ())
    return rows, heads
