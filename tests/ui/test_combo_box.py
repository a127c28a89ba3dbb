"""A combo box with a text that is longer than its room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.inputs import ComboBox

LONG = "Number of new tokens that are written at most (max_new_tokens)"


def drawn(qtbot: QtBot, box: QComboBox, text: str) -> QImage:
    qtbot.addWidget(box)
    box.addItem(text)
    box.resize(200, 30)
    return box.grab().toImage()


@pytest.mark.parametrize("text", ["Greedy", "温度"])
def test_short_text_is_drawn_as_by_qt(qtbot: QtBot, text: str) -> None:
    assert drawn(qtbot, ComboBox(), text) == drawn(qtbot, QComboBox(), text)


def test_long_text_ends_with_an_ellipsis(qtbot: QtBot) -> None:
    box = ComboBox()
    shown = drawn(qtbot, box, LONG)
    ends = [LONG[:count].rstrip() + "…" for count in range(5, len(LONG))]
    assert any(shown == drawn(qtbot, QComboBox(), text) for text in ends)
    assert shown != drawn(qtbot, QComboBox(), LONG)
    assert box.currentText() == LONG


def test_text_in_another_direction_is_shortened_too(qtbot: QtBot) -> None:
    box = ComboBox()
    box.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    plain = QComboBox()
    plain.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    assert drawn(qtbot, box, LONG) != drawn(qtbot, plain, LONG)
