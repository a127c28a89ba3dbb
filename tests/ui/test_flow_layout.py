"""Clearing a layout deletes its widgets, and none of them appears again."""

from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.flow_layout import clear_layout


def test_cleared_widget_does_not_become_window(qtbot: QtBot) -> None:
    """A layout shows new widgets with the next event; by then the widget has no parent."""
    room = QWidget()
    qtbot.addWidget(room)
    column = QVBoxLayout(room)
    with qtbot.waitExposed(room):
        room.show()
    button = QPushButton("gone")
    column.addWidget(button)
    clear_layout(column)
    QApplication.processEvents()
    assert [window for window in QApplication.topLevelWidgets() if window.isVisible()] == [room]
