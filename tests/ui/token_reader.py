"""A token view under test: show a run, click and move through it, record selections and painting."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.views.tokens.view import TokenView
from decodescope.core.events import TokenChosen
from tests.ui.windows import show_widget


class TokenViewSession:
    """Handles the view's signals as the session does."""

    def __init__(self, view: TokenView, run: Run) -> None:
        self.view, self.run = view, run
        self.picked: list[int] = []
        view.signals.tokenActivated.connect(self.select)
        view.show_run(run)

    def select(self, index: int) -> None:
        self.picked.append(index)
        self.run.select(index)
        self.view.selection_changed(self.run)

    def click(self, index: int) -> None:
        QTest.mouseClick(self.view.area.viewport(), Qt.MouseButton.LeftButton, pos=self.view.token_rect(index).center())

    def key(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.view, key, modifier)

    def write(self, tokens: list[TokenChosen]) -> None:
        self.run.apply(tokens)
        self.view.events_arrived(self.run, tokens)

    def image(self) -> QImage:
        QApplication.processEvents()
        return self.view.area.viewport().grab().toImage()


def opened(qtbot: QtBot) -> TokenView:
    """The view in a light window of its own, several rows of a story high."""
    return show_widget(qtbot, TokenView(), 560, 420)
