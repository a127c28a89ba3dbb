"""What a layout is cleared of is gone, and nothing of it comes up again."""

from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.flow_layout import clear_layout


def test_what_is_cleared_at_once_never_becomes_a_window(qtbot: QtBot) -> None:
    """A layout shows what it is given with the next event; by then it has no parent any more."""
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
