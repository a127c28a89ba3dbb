"""The token view's tools: what the colours mean, and white space made visible."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from app.theme.theme import Theme
from app.views.text.row_painting import COLOURINGS
from resources.language import tr

TERSE_MIN_SCALE = 1.25
"""Scale of the type from which on there is no room for the word Colour."""


class TokenTools(QWidget):
    """A menu of colourings and a switch for ␣ and ↵."""

    colouringChosen = Signal(str)
    whitespaceToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_terse = False
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.colour = QToolButton(self)
        self.colour.setObjectName("colourButton")
        self.colour.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.colour.setAccessibleName(tr("What the colours show"))
        self.colour.setToolTip(tr("What the underlines show"))
        self.colour.setMenu(self._menu())
        self.whitespace = QToolButton(self)
        self.whitespace.setObjectName("whitespaceButton")
        self.whitespace.setCheckable(True)
        self.whitespace.setText("␣↵")
        self.whitespace.setAccessibleName(tr("Show spaces and line breaks"))
        self.whitespace.setToolTip(tr("Show spaces and line breaks"))
        self.whitespace.toggled.connect(self.whitespaceToggled)
        row.addWidget(self.colour)
        row.addWidget(self.whitespace)
        self.set_colouring("probability")
        for name in ("difference", "influence"):
            self.set_colouring_available(name, False)

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        self._group = QActionGroup(menu)
        for name, (title, *_words) in COLOURINGS.items():
            action = menu.addAction(tr(title))
            action.setCheckable(True)
            action.setData(name)
            self._group.addAction(action)
        self._group.triggered.connect(self._on_action)
        return menu

    def set_colouring_available(self, name: str, is_available: bool) -> None:
        """Whether that colouring has anything to show."""
        for action in self._group.actions():
            if action.data() == name:
                action.setVisible(is_available)

    def set_colouring(self, name: str) -> None:
        """Show `name` as the colouring in force, without a signal."""
        for action in self._group.actions():
            action.setChecked(action.data() == name)
        self._name = name
        what = tr(COLOURINGS[name][0]).lower()
        self.colour.setText(f"{what} ⌄" if self._is_terse else tr("Colour: {what} ⌄").format(what=what))

    def set_theme(self, theme: Theme) -> None:
        """Take the theme's sizes."""
        self._is_terse = theme.scale > TERSE_MIN_SCALE
        self.set_colouring(self._name)
        for button in (self.colour, self.whitespace):
            button.setFont(theme.font(12))
            button.setCursor(Qt.CursorShape.PointingHandCursor)

    @Slot(QAction)
    def _on_action(self, action: QAction) -> None:
        self.set_colouring(action.data())
        self.colouringChosen.emit(action.data())
