"""Nothing is cut and nothing overlaps, in small windows and with large type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.export_dialog import ExportDialog
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.language import set_language
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.node_reports import NodeReport, ReportRow
from decodescope.app.window.main_window import MainWindow, first_size
from decodescope.core import strategies
from decodescope.resources.language import tr
from tests.app.history_files import run_data
from tests.long import slow
from tests.ui.layout import faults, settle
from tests.ui.windows import open_window, run

SIZES = [slow(((1280, 800), 1.0)), ((900, 600), 1.5), slow(((1280, 800), 2.0)), slow(((900, 600), 2.0))]


def arrange(window: MainWindow, size: tuple[int, int], scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(*size)
    settle(window)


@pytest.mark.parametrize(("size", "scale"), SIZES)
def test_views_are_not_clipped(qtbot: QtBot, window: MainWindow, size: tuple[int, int], scale: float) -> None:
    arrange(window, size, scale)
    settle(window)
    assert "\n".join(faults(window)) == ""
    run(qtbot, window)
    window.session.select_token(2)
    for number in range(window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        settle(window)
        assert "\n".join(faults(window)) == "", window.parts.centre.columns[0].current_name
    check_history(window)


@pytest.fixture
def chinese_window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    """A window with Chinese as its saved language."""
    store = SettingsStore(config_dir)
    store.settings.appearance.language = "zh_CN"
    store.save()
    yield open_window(qtbot, config_dir)
    set_language("en")


@pytest.mark.parametrize(("size", "scale"), [((900, 600), 1.5), ((1280, 800), 2.0)])
def test_chinese_views_are_not_clipped(
    qtbot: QtBot, chinese_window: MainWindow, size: tuple[int, int], scale: float
) -> None:
    window = chinese_window
    arrange(window, size, scale)
    assert window.parts.setup.prompt.score_button.text() == "为此文本评分"
    assert "\n".join(faults(window)) == ""
    run(qtbot, window)
    window.session.select_token(2)
    window.parts.messages.show_setup_error(tr("Cannot run yet"), tr("No model is selected."), tr("Select one."))
    for number in range(window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        settle(window)
        assert "\n".join(faults(window)) == "", window.parts.centre.columns[0].current_name
    dialog = window.parts.dialogs.open_settings()
    settle(dialog)
    assert "\n".join(faults(dialog)) == ""
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    window.parts.history_panel.show()
    settle(window)
    assert "\n".join(faults(window)) == ""


def check_history(window: MainWindow) -> None:
    """With runs of any name, with one that can be brought back, with nothing found."""
    panel, store = window.parts.history_panel, window.history.store
    assert store is not None
    for number, name in enumerate(("A title that does not end so soon " * 5, "从前有一只小猫" * 9, "W" * 200)):
        store.save(run_data(number, name, name, title=name, tokens=123_456, speed=1234.5))
    panel.toggle()
    assert panel.view is not None
    panel.view.list.setCurrentIndex(panel.view.list.runs.index(1))
    panel.view.footer.buttons["delete"].click()
    settle(window)
    assert panel.view.footer.undo.isVisible()
    assert "\n".join(faults(window)) == ""
    panel.view.search.setText("nowhere")
    panel.refresh()
    settle(window)
    assert panel.view.empty.isVisible()
    assert "\n".join(faults(window)) == ""


@pytest.mark.parametrize(("size", "scale"), SIZES)
def test_inspector_report_is_not_clipped(qtbot: QtBot, window: MainWindow, size: tuple[int, int], scale: float) -> None:
    arrange(window, size, scale)
    run(qtbot, window)
    rows = [("scales and offsets", "36,864,000"), ("in 4 bits (64 tokens)", "1,184,320"), ("keys", "73,728")]
    window.parts.inspector.show_report(
        NodeReport(
            "After token 120", "1.2 MiB", "1,290,240 bytes on the CPU · peak 1.2 MiB · key error 6.6 %", "",
            "Every 64 tokens are written in 4 bits a number.", table_title="Contents", columns=("part", "bytes"),
            rows=tuple(ReportRow(cells) for cells in rows), formula_title="Predicted", formula="batch · kv heads · 12",
        )
    )  # fmt: skip
    settle(window)
    assert "\n".join(faults(window)) == ""


def _showing_every_setting() -> list[str]:
    """As few strategies as together have every setting."""
    chosen, seen = [], set()
    for strategy in sorted(strategies.registry.values(), key=lambda each: -len(each.parameters)):
        if not seen.issuperset(strategy.parameters):
            chosen.append(strategy.name)
            seen.update(strategy.parameters)
    return chosen


@pytest.mark.parametrize(("size", "scale"), SIZES[1:])
def test_strategy_settings_are_not_clipped(window: MainWindow, size: tuple[int, int], scale: float) -> None:
    arrange(window, size, scale)
    for name in _showing_every_setting():
        window.parts.settings_controller.choose(strategy=name)
        window.parts.setup.parameters.set_all_open(True)
        settle(window)
        assert "\n".join(faults(window.parts.setup)) == "", name


@pytest.mark.parametrize(("size", "scale"), SIZES)
def test_error_banner_clips_nothing(window: MainWindow, size: tuple[int, int], scale: float) -> None:
    arrange(window, size, scale)
    banner = window.parts.centre.error_banner
    banner.show_message("The prompt cannot be used", "It has 3,602 tokens, 1,554 more than the model's context of "
                        "2,048.", "Shorten it, or choose another model.", "line\n" * 40)  # fmt: skip
    settle(window)
    assert "\n".join(faults(window)) == ""
    close = banner.close_button
    assert window.rect().contains(close.mapTo(window, QPoint(0, 0)))
    assert window.rect().contains(close.mapTo(window, close.rect().bottomRight()))


def test_layout_check_finds_clipped_and_overlapping_widgets(qtbot: QtBot) -> None:
    """The check itself must find clipped text, a child outside its parent, and overlapping widgets."""
    outer = QWidget()
    qtbot.addWidget(outer)
    column = QVBoxLayout(outer)
    label = QLabel("a long line of words")
    column.addWidget(label)
    below = QLabel("below")
    column.addWidget(below)
    outer.show()
    assert "\n".join(faults(outer)) == ""
    label.setFixedWidth(10)
    settle(outer)
    assert any("it needs" in reported for reported in faults(outer))
    label.setMaximumWidth(10_000)
    label.setGeometry(0, 0, 2000, 20)
    assert any("reaches beyond" in reported for reported in faults(outer))
    label.setGeometry(below.geometry())
    assert any("overlap" in reported for reported in faults(outer))


@pytest.mark.parametrize("screen", [(1280, 800), (1440, 900), (1920, 1080), (3840, 2160)])
def test_initial_window_size_leaves_room_for_frame(screen: tuple[int, int]) -> None:
    size = first_size(QSize(*screen))
    assert size.width() < screen[0]
    assert size.height() + 30 <= screen[1]
    assert size.width() <= 1440


@pytest.mark.parametrize("size", [(1280, 720), (900, 600)])
def test_large_font_keeps_room_for_text(window: MainWindow, size: tuple[int, int]) -> None:
    arrange(window, size, 1.5)
    assert window.parts.centre.columns[0].stack.height() >= 0.4 * size[1]


def test_strategy_list_shows_full_descriptions(window: MainWindow) -> None:
    picker = window.parts.toolbar.strategy
    picker.showPopup()
    popup = picker.popup
    for item in picker.items:
        metrics = QFontMetrics(theme_for("light").font(11))
        rect = popup.list.visualRect(popup.index_of(item.data))
        room = QRect(0, 0, popup.delegate.text_room(rect.width()), 1000)
        needed = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, item.subtitle).height()
        assert rect.height() >= needed + metrics.height()
    picker.hidePopup()


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_export_dialog_is_not_clipped(qtbot: QtBot, window: MainWindow, scale: float) -> None:
    run(qtbot, window)
    window.parts.appearance.set_font_scale(scale)
    window.parts.export.open_dialog()
    dialog = window.findChild(ExportDialog)
    qtbot.waitExposed(dialog)
    for number, offer in enumerate(dialog.offers):
        dialog.content_combo.setCurrentIndex(number)
        for kind in range(len(offer.formats)):
            dialog.format_combo.setCurrentIndex(kind)
            settle(dialog)
            assert faults(dialog) == [], (offer.title, offer.formats[kind])
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
