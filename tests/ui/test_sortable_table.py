"""The table whose rows are sorted by a click on a heading."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItemModel
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.views.tree.rows_table import SortableTable


@pytest.mark.parametrize("title", ["No.", "编号", "A heading of several words"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_column_is_as_wide_as_its_heading_with_the_arrow(qtbot: QtBot, title: str, scale: float) -> None:
    model = QStandardItemModel(1, 2)
    model.setHorizontalHeaderLabels([f"{title} ↑", "Text"])
    table = SortableTable("numbers", model, 1, {0: 40})
    qtbot.addWidget(table)
    theme = theme_for("light", scale)
    table.set_theme(theme)
    heading = str(model.headerData(0, Qt.Orientation.Horizontal))
    needed = table.horizontalHeader().fontMetrics().horizontalAdvance(heading)
    assert table.columnWidth(0) >= max(theme.px(40), needed + 2 * theme.px(6))
