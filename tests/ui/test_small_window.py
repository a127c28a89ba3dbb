"""Small windows and large fonts: settings above examples, readable names, reachable tours."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QStandardPaths, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QStyleOptionViewItem, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.state.beam_tree import HypothesisRow
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.tree.beam_content import TEXT, HypothesesTable
from decodescope.app.views.tree.rows_table import elide_around, first_unique_indices
from decodescope.app.widgets import file_dialogs
from decodescope.app.window.main_window import MainWindow
from tests.ui.menus import menu_faults
from tests.ui.windows import find, run, whole


def resize(window: MainWindow, width: int, height: int) -> None:
    window.resize(width, height)
    QApplication.processEvents()
    QApplication.processEvents()


def top(window: MainWindow, part: QWidget) -> int:
    return part.mapTo(window, QPoint(0, 0)).y()


def test_settings_stand_above_examples_and_presets_in_a_small_window(window: MainWindow) -> None:
    setup = window.parts.setup
    temperature = setup.parameters.rows["temperature"]
    row, presets = setup.prompt.examples_row, setup.presets
    resize(window, 900, 600)
    assert top(window, setup.prompt.editor) < top(window, temperature) < top(window, row)
    assert top(window, temperature) < top(window, presets)
    assert temperature.visibleRegion().boundingRect().height() == temperature.height(), "it is seen without scrolling"
    resize(window, 1280, 800)
    assert top(window, row) < top(window, temperature) < top(window, presets)


def test_tab_order_follows_visual_order_in_small_window(window: MainWindow) -> None:
    resize(window, 900, 600)
    stops = window.tab_order.tab_stops()
    setup = window.parts.setup
    settings = [stops.index(stop) for stop in stops if setup.parameters.isAncestorOf(stop)]
    examples = [stops.index(stop) for stop in stops if setup.prompt.examples_row.isAncestorOf(stop)]
    assert settings
    assert examples
    assert max(settings) < min(examples)


def test_tours_are_reachable_at_any_size(window: MainWindow) -> None:
    resize(window, 900, 600)
    assert find(window, QWidget, "toursButton").isVisible()
    window.parts.appearance.set_font_scale(2.0)
    QApplication.processEvents()
    line = window.parts.menu_bar.commands["choose_tour"]
    assert line.isEnabled()
    assert line in window.parts.menu_bar.menus["&Help"].actions()


@pytest.mark.every(2)
@pytest.mark.parametrize(("width", "scale"), [(900, 1.0), (900, 1.5), (1280, 1.5), (1440, 2.0)])
def test_picker_names_are_not_truncated(window: MainWindow, width: int, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    resize(window, width, 700)
    toolbar = window.parts.toolbar
    shown = [picker for picker in toolbar.pickers if picker.isVisible()]
    assert len(shown) == 3
    assert [picker.objectName() for picker in shown if picker.width() < picker.title_width] == []
    for part in (*shown, toolbar.seed, toolbar.run_button):
        assert toolbar.rect().contains(part.geometry())


def test_picker_widths_are_restored_after_shrinking(window: MainWindow) -> None:
    resize(window, 1440, 900)
    before = [picker.width() for picker in window.parts.toolbar.pickers]
    resize(window, 900, 600)
    assert [picker.width() for picker in window.parts.toolbar.pickers] != before
    resize(window, 1440, 900)
    assert [picker.width() for picker in window.parts.toolbar.pickers] == before


DIALOGS: dict[str, Callable[[MainWindow], object]] = {
    "open_run": lambda window: window.parts.actions.do("open_run"),
    "save_run": lambda window: window.parts.actions.do("save_run"),
    "open_folder": lambda window: window.parts.actions.do("open_folder"),
    "open_preset": lambda window: window.parts.actions.do("open_preset"),
    "preset_export": lambda window: window.parts.presets.choose_export_path("llama.cpp"),
}


@pytest.mark.parametrize("name", DIALOGS)
def test_file_dialogs_start_in_documents_or_last_folder(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    documents, used = tmp_path / "Documents", tmp_path / "used"
    documents.mkdir()
    used.mkdir()
    monkeypatch.setattr(file_dialogs, "_last_folder", "")
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _place: str(documents))
    run(qtbot, window)
    DIALOGS[name](window)
    (dialog,) = window.findChildren(QFileDialog)
    assert Path(dialog.directory().absolutePath()) == documents
    assert Path(dialog.directory().absolutePath()) != Path.cwd()
    file_dialogs.remember_folder(str(used / "a.decodescope"))
    dialog.close()
    QApplication.sendPostedEvents(None, 0)
    DIALOGS[name](window)
    dialog = next(found for found in window.findChildren(QFileDialog) if found.isVisible())
    assert Path(dialog.directory().absolutePath()) == used
    dialog.close()


def test_initial_folder_without_last_folder_is_existing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_dialogs, "_last_folder", str(tmp_path / "gone"))
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _place: "")
    assert file_dialogs.initial_folder() == "/"
    assert os.path.isdir(file_dialogs.initial_folder())


BEAMS = (
    "Mia lived in a den under the hill and every day she danced until evening came",
    "Mia lived in a den under the hill and every day she danced until morning",
    "Mia lived in a house by the sea and she loved the boats that came home at night",
    "Otto was a bear",
)


def test_first_unique_indices_of_similar_texts() -> None:
    places = first_unique_indices(BEAMS)
    assert [text[place:] for text, place in zip(BEAMS, places, strict=True)] == [
        "evening came", "morning", "house by the sea and she loved the boats that came home at night",
        "Otto was a bear",
    ]  # fmt: skip
    assert first_unique_indices([]) == []
    assert first_unique_indices(["one"]) == [0]
    assert first_unique_indices(["same", "same"]) == [4, 4]


def test_elided_texts_stay_distinct(qapp: QApplication) -> None:
    metrics = QFontMetrics(QApplication.font())
    width = metrics.horizontalAdvance("x" * 30)
    shown = [
        elide_around(text, place, width, metrics)
        for text, place in zip(BEAMS, first_unique_indices(BEAMS), strict=True)
    ]
    assert len(set(shown)) == len(BEAMS)
    assert shown[0].startswith("…")
    assert "evening" in shown[0]
    assert "morning" in shown[1]
    assert "house" in shown[2]
    assert shown[3] == "Otto was a bear"
    assert all(metrics.horizontalAdvance(text) <= width for text in shown)


def test_beam_table_rows_are_visibly_distinct(qtbot: QtBot) -> None:
    table = HypothesesTable()
    qtbot.addWidget(table)
    table.set_theme(theme_for("light"))
    table.resize(420, 200)
    table.show_rows([HypothesisRow(node, text, -node, 9, 0, "running") for node, text in enumerate(BEAMS)], 1, 1)
    table.show()
    model, shown = table.model(), []
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        table.sortByColumn(TEXT, order)
        shown = []
        for row in range(model.rowCount()):
            option = QStyleOptionViewItem()
            option.initFrom(table)
            option.rect = table.visualRect(model.index(row, TEXT))
            table.itemDelegateForColumn(TEXT).initStyleOption(option, model.index(row, TEXT))
            shown.append(option.text)
        assert len(set(shown)) == len(BEAMS)
        for word in ("evening", "morning", "house", "Otto"):
            assert any(word in text for text in shown), word


def test_no_menu_of_the_window_has_a_stray_separator(qtbot: QtBot, window: MainWindow) -> None:
    for strategy in ("sampling", "beam_search"):
        window.parts.settings_controller.choose(strategy=strategy)
        run(qtbot, whole(window))
        for size in ((1280, 800), (900, 600)):
            resize(window, *size)
            for view in window.parts.centre.columns[0].views:
                view.signals.tokenActivated.emit(0)
                QApplication.processEvents()
                picked = view.selected_node_menu()
                if picked is not None:
                    assert menu_faults(picked) == []
                    assert not picked.actions()[0].isSeparator()
                    picked.deleteLater()
            for menu in window.findChildren(QMenu):
                menu.aboutToShow.emit()
                assert menu_faults(menu) == []
                menu.aboutToHide.emit()
