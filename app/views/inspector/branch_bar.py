"""Another token in place of the one that is shown: one of its alternatives, or words that somebody types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.state.branching import forbidden_reason
from app.theme.theme import Theme
from app.widgets.plain_text import tooltip
from core import words
from resources.language import tr

if TYPE_CHECKING:
    from core.events import Alternative, TokenChosen


class BranchBar(QWidget):
    """`wanted(what)`: the run is to go on with that token's id, or with those words; `picked(id)`: an alternative is
    marked, by whatever means."""

    wanted = Signal(object)
    picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._alternatives: Sequence[Alternative] = ()
        self._forbidden = frozenset[int]()
        self._index = 0
        self.button = QPushButton(self)
        self.button.setObjectName("branchButton")
        self.button.clicked.connect(self._on_confirmed)
        self.field = QLineEdit(self)
        self.field.setObjectName("branchField")
        self.field.setPlaceholderText(tr("or type other words"))
        self.field.setAccessibleName(tr("Other words in its place"))
        self.field.setToolTip(tr("Other words in its place; ↑ and ↓ go through the alternatives"))
        self.field.setMaxLength(1000)
        self.field.textChanged.connect(self._update_button)
        self.field.returnPressed.connect(self._on_confirmed)
        self.field.installEventFilter(self)
        self._column = QVBoxLayout(self)
        self._column.addWidget(self.button)
        self._column.addWidget(self.field)

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's spacing."""
        self._column.setSpacing(theme.px(6))
        self._column.setContentsMargins(0, theme.px(8), 0, 0)
        self._update_button()

    def set_token(self, token: TokenChosen, reason: str, forbidden: frozenset[int] = frozenset()) -> None:
        """Speak of another token; `reason`: why nothing can stand in its place, empty where something can; `forbidden`:
        ids that the grammar forbids in its place."""
        self._alternatives = [item for item in token.alternatives if item.id != token.id]
        self._forbidden = forbidden
        self._index = next((place for place, item in enumerate(self._alternatives) if item.id not in forbidden), 0)
        self.field.clear()
        self.setEnabled(not reason)
        self.setToolTip(tooltip(reason))
        self._update_button()

    @property
    def choice(self) -> int | str | None:
        """The words that are typed, else the id of the marked alternative; None for one that cannot stand there."""
        if self.field.text().strip():
            return self.field.text()
        marked = self._marked
        return None if marked is None or marked.id in self._forbidden else marked.id

    @property
    def _marked(self) -> Alternative | None:
        """The alternative that was picked, where no words are typed."""
        return self._alternatives[self._index] if self._alternatives and not self.field.text().strip() else None

    @Slot(int)
    def select_alternative(self, token: int) -> None:
        """Mark that alternative."""
        places = [place for place, item in enumerate(self._alternatives) if item.id == token]
        if places:
            self._index = places[0]
            self.field.clear()
            self._update_button()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up and Down go through the alternatives."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self._alternatives:
            step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
            if step is not None:
                self.select_alternative(self._alternatives[(self._index + step) % len(self._alternatives)].id)
                return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The words on the button take the room there is."""
        super().resizeEvent(event)
        self._update_button()

    @Slot()
    def _update_button(self) -> None:
        """What the button does, and which row is marked."""
        marked, is_possible = self._marked, self.choice is not None
        self.button.setEnabled(is_possible)
        self.button.setText(self._title())
        self.button.setAccessibleName(self._description())
        explanation = tr("A new run: the text up to here, this, and then what is set now")
        self.button.setToolTip(tooltip(explanation if is_possible or marked is None else self._description()))
        self.picked.emit(marked.id if marked is not None else -1)

    def _description(self) -> str:
        """What the button does, or why it does nothing, in full."""
        if self.choice is not None:
            return tr("Continue with {name} instead").format(name=self._name())
        return forbidden_reason(self._marked.text, self._marked.special) if self._marked is not None else tr("Continue")

    def _name(self) -> str:
        marked = self._marked
        if marked is not None:
            return words.quote(marked.text, marked.special)
        return words.quote(self.field.text(), False) if self.field.text().strip() else ""

    def _title(self) -> str:
        """As long as the button is wide."""
        name, metrics = self._name(), self.button.fontMetrics()
        if not name:
            return tr("Continue with other words")
        room = self.button.width() - 4 * metrics.averageCharWidth()
        titles = [self._description()]
        if self.choice is not None:
            titles += [tr("Continue with {name}").format(name=name), tr("With {name}").format(name=name)]
        fitting = (title for title in titles if metrics.horizontalAdvance(title) <= room)
        return next(fitting, metrics.elidedText(titles[-1], Qt.TextElideMode.ElideRight, max(room, 40)))

    @Slot()
    def _on_confirmed(self) -> None:
        if (choice := self.choice) is not None:
            self.wanted.emit(choice)
