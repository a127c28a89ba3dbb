"""The spotlight of a tour: it follows its target and survives its deletion."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.panel.tour_spotlight import TourSpotlight


def test_spotlight_survives_deleted_target(qtbot: QtBot) -> None:
    """Rows of settings go with their strategy, in the middle of a tour."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(400, 300)
    window.show()
    spotlight = TourSpotlight(window, QWidget(window))
    rows = [QWidget(window) for _ in range(2)]
    for place, row in enumerate(rows):
        row.setGeometry(10, 10 + 50 * place, 100, 40)
        row.show()
    spotlight.point_at(lambda: (rows[-1], rows[-1].rect()))
    assert spotlight.target == QRect(10, 60, 100, 40)
    rows.pop().deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    with qtbot.captureExceptions() as raised:
        spotlight.update_target()
        assert spotlight.target == QRect(10, 10, 100, 40)
        rows[0].move(30, 10)
        qtbot.waitUntil(lambda: spotlight.target == QRect(30, 10, 100, 40))
    assert not raised
    spotlight.point_at(None)
    assert spotlight.isHidden()
