"""The spotlight of a tour: it follows its target and survives its deletion."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.panel.tour_spotlight import TourSpotlight
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.overlays import GAP, SpotlightOverlay


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


@pytest.mark.parametrize(("name", "letters"), [("light", "#000000"), ("dark", "#ffffff")])
def test_letters_below_the_ring_of_a_spotlight_are_not_cut(qtbot: QtBot, name: str, letters: str) -> None:
    page, theme = QWidget(), theme_for(name)
    qtbot.addWidget(page)
    page.resize(200, 100)
    page.setStyleSheet(f"background: {theme.window};")
    overlay = SpotlightOverlay(page, theme)
    overlay.target_rect = lambda: QRect(60, 30, 60, 20)
    ring = 60 - theme.px(GAP)
    assert page.grab().toImage().pixelColor(ring, 40).name() == theme.best
    page.setStyleSheet(f"background: {letters};")
    assert page.grab().toImage().pixelColor(ring, 40).name() == letters
