"""Everything that is shown can be saved: at any size, in either theme, as pixels, as shapes or as figures."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QMessageBox, QScrollBar
from pytestqt.qtbot import QtBot

from app.panels.export_dialog import CSV, PNG, SVG, ExportDialog, Offer
from app.theme.theme import theme_for
from app.views import VIEWS
from app.views.shared.portrait import Pose
from app.window.main_window import MainWindow
from tests.ui.windows import open_window
from tests.ui.windows import run as run_window

SIZE = QSize(700, 500)
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    window = open_window(qtbot, config_dir)
    run_window(qtbot, window)
    yield window
    window.close()


def number_of(window: MainWindow, title: str) -> int:
    """Brings a view to the front, if it is one."""
    for spec in VIEWS:
        if spec.title == title:
            window.parts.centre.show_view(spec.name)
    return [subject.title for subject in window.parts.export.subjects()].index(title)


PARTS = ["Tokens", "Chat", "Tree", "Speculation", "Memory", "Compare", "Inspector", "Timeline"]


@pytest.mark.parametrize("title", PARTS)
def test_a_picture_has_the_size_that_was_asked_for(window: MainWindow, tmp_path: Path, title: str) -> None:
    number, path = number_of(window, title), tmp_path / "picture.png"
    subject = window.parts.export.subjects()[number]
    geometry = subject.widget.geometry()
    window.parts.export.save_picture(number, Pose(SIZE, scale=2.0), str(path))
    picture = QImage(str(path))
    assert picture.size() == SIZE * 2
    assert len({picture.pixel(x, y) for x in range(0, 1400, 7) for y in range(0, 1000, 7)}) > 1, "nothing is on it"
    assert subject.widget.geometry() == geometry, "it stays where it was"


@pytest.mark.parametrize("title", PARTS)
def test_shapes_keep_their_text(window: MainWindow, tmp_path: Path, title: str) -> None:
    number, path = number_of(window, title), tmp_path / "picture.svg"
    window.parts.export.save_picture(number, Pose(SIZE, whole=True), str(path))
    root = ElementTree.parse(path).getroot()
    assert root.get("viewBox", "").startswith("0 0 700 ")
    assert [text for text in root.iter(TEXT) if "".join(text.itertext()).strip()]


@pytest.mark.parametrize("title", ["Tokens", "Memory", "Inspector"])
def test_a_picture_in_the_other_theme(window: MainWindow, qtbot: QtBot, tmp_path: Path, title: str) -> None:
    shown = window.parts.appearance.theme
    other = theme_for("light" if shown.dark else "dark", shown.scale)
    number = number_of(window, title)
    subject = window.parts.export.subjects()[number]
    window.parts.export.save_picture(number, Pose(SIZE), str(tmp_path / "first.png"))  # it has its place by now
    QApplication.processEvents()
    before = subject.widget.grab().toImage()
    window.parts.export.save_picture(number, Pose(SIZE, theme=other.name), str(tmp_path / "p.png"))
    corner = QImage(str(tmp_path / "p.png")).pixelColor(699, 499)
    assert corner == other.color(subject.ground)
    qtbot.waitUntil(lambda: subject.widget.grab().toImage() == before)  # what is shown is as it was


def test_all_of_a_page_that_scrolls(window: MainWindow, tmp_path: Path) -> None:
    window.resize(1200, 560)
    number, path = number_of(window, "Inspector"), tmp_path / "whole.png"
    low = QSize(320, 200)
    window.parts.export.save_picture(number, Pose(low, whole=True), str(path))
    assert QImage(str(path)).height() > 300
    bars = window.parts.inspector.findChildren(QScrollBar)
    before = [bar.value() for bar in bars]
    window.parts.inspector.area.verticalScrollBar().setValue(5)
    window.parts.export.save_picture(number, Pose(low), str(path))
    assert QImage(str(path)).size() == low
    assert [bar.value() for bar in bars] == [5 if bar is window.parts.inspector.area.verticalScrollBar() else value
                                             for bar, value in zip(bars, before, strict=True)]  # fmt: skip


def test_figures_as_a_file(window: MainWindow, tmp_path: Path) -> None:
    number = number_of(window, "Memory")
    window.parts.export.save_figures(number, str(tmp_path / "memory.csv"))
    with (tmp_path / "memory.csv").open(encoding="utf-8", newline="") as file:
        assert "tokens_written" in next(csv.reader(file))


@pytest.mark.parametrize("name", ["nowhere/p.png", "nowhere/p.svg", "nowhere/p.csv"])
def test_what_cannot_be_saved_is_told(window: MainWindow, qtbot: QtBot, tmp_path: Path, name: str) -> None:
    number, export = number_of(window, "Memory"), window.parts.export
    path = str(tmp_path / name)
    export.save_figures(number, path) if name.endswith("csv") else export.save_picture(number, Pose(SIZE), path)
    box = window.findChild(QMessageBox)
    assert path in box.text()
    with qtbot.waitSignal(box.destroyed):
        box.close()


def test_a_picture_too_large_is_refused_before_it_takes_memory(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    number = number_of(window, "Tokens")
    window.parts.export.save_picture(number, Pose(QSize(10_000, 10_000), scale=2.0), str(tmp_path / "p.png"))
    box = window.findChild(QMessageBox)
    assert "20,000 × 20,000 pixels is too large" in box.text()
    with qtbot.waitSignal(box.destroyed):
        box.close()


def test_the_dialog_offers_what_there_is(window: MainWindow, qtbot: QtBot) -> None:
    number_of(window, "Memory")
    window.parts.actions.do("save_picture")
    dialog = window.findChild(ExportDialog)
    assert [dialog.what.itemText(n) for n in range(dialog.what.count())] == ["Memory", "Inspector", "Timeline"]
    assert dialog.kind.findData(CSV) >= 0
    dialog.what.setCurrentIndex(1)
    assert dialog.kind.findData(CSV) < 0, "the inspector has no figures"
    assert (dialog.width_box.value(), dialog.height_box.value()) == window.parts.inspector.size().toTuple()
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()


def test_the_dialog_says_what_was_chosen(qtbot: QtBot) -> None:
    dialog = ExportDialog([Offer("Tokens", QSize(640, 480), has_figures=True)])
    dialog.width_box.setValue(800)
    assert dialog._told.text() == "1,600 × 960 pixels"
    dialog.theme.setCurrentIndex(2)
    assert dialog.pose == Pose(QSize(800, 480), scale=2.0, theme="dark")
    dialog.whole.setChecked(True)
    assert not dialog.height_box.isEnabled()
    dialog.kind.setCurrentIndex(dialog.kind.findData(SVG))
    assert dialog.pose == Pose(QSize(800, 480), True, 1.0, "dark")
    dialog.kind.setCurrentIndex(dialog.kind.findData(CSV))
    assert not dialog.width_box.isEnabled()
    dialog.kind.setCurrentIndex(dialog.kind.findData(PNG))
    dialog.show()
    with qtbot.waitSignal(dialog.chosen) as said:
        dialog.save.click()
    assert said.args[:2] == [0, PNG]
