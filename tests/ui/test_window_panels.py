"""The window's panels: widths of the side panels, tabs and tools in small windows, text that is not clipped."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QApplication, QDialog, QScrollArea, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.panels.window_layout import MIN_WIDTHS, PREFERRED_WIDTHS
from decodescope.app.widgets.banner import Banner
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.screen import available_rect
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from tests.long import every
from tests.ui.layout import faults, settle
from tests.ui.windows import open_window, run


def sides(window: MainWindow) -> tuple[int, int]:
    QApplication.processEvents()
    left, _middle, right = window.parts.splitter.sizes()
    return left, right


def test_side_panel_widths_are_restored_after_shrinking(window: MainWindow) -> None:
    window.resize(900, 600)
    assert sides(window) == MIN_WIDTHS
    window.resize(1440, 900)
    assert sides(window) == PREFERRED_WIDTHS


def test_side_panel_widths_are_restored_after_large_font(window: MainWindow) -> None:
    before = sides(window)
    window.parts.appearance.set_font_scale(1.5)
    window.parts.appearance.set_font_scale(1.0)
    assert sides(window) == before == PREFERRED_WIDTHS


def test_widths_that_were_dragged_are_kept(qtbot: QtBot, config_dir: Path, window: MainWindow) -> None:
    handle = window.parts.splitter.handle(1)
    window.parts.splitter.moveSplitter(380, 1)
    assert sides(window)[0] == pytest.approx(380, abs=2)
    window.resize(1600, 900)
    assert sides(window)[0] == pytest.approx(380, abs=2)
    assert handle.isVisible()
    window.close()
    again = open_window(qtbot, config_dir)
    assert sides(again) == pytest.approx((380, 324), abs=2)


@pytest.mark.parametrize("layout", [{"sides": "wide"}, {"sides": [-5, 2**31]}, {"window": 5}, {"window": "AAAA"}])
def test_invalid_saved_layout_is_ignored(qtbot: QtBot, config_dir: Path, layout: dict[str, object]) -> None:
    (config_dir / "settings.json").write_text(json.dumps({"layout": layout}), encoding="utf-8")
    (config_dir / "geometry.ini").write_text("[General]\nwindow=5\nsides=5\n", encoding="utf-8")  # the first release's
    assert sides(open_window(qtbot, config_dir)) == PREFERRED_WIDTHS


def test_window_geometry_is_saved(
    qtbot: QtBot, config_dir: Path, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, restored = bytes(window.saveGeometry().data()), []
    window.close()
    monkeypatch.setattr(MainWindow, "restoreGeometry", lambda _window, place: restored.append(bytes(place.data())))
    qtbot.addWidget(build_window(config_dir, assembled=False))
    assert restored == [stored]


def test_closed_panel_gives_width_to_center(window: MainWindow) -> None:
    window.parts.layout.toggle_setup()
    assert sides(window)[1] == PREFERRED_WIDTHS[1]
    assert window.parts.centre.width() > 1280 - PREFERRED_WIDTHS[1] - 5
    window.parts.status.setup_toggle.click()
    assert sides(window) == PREFERRED_WIDTHS


def tabs_out_of_sight(window: MainWindow) -> list[int]:
    """Tabs that are neither to be seen whole nor in the menu beside the tabs."""
    tabs = window.parts.centre.columns[0].tabs
    listed = {action.data() for action in tabs.more_button.menu().actions() if action.isVisible()}
    seen = {i for i in range(tabs.count()) if tabs.isTabVisible(i) and tabs.tabRect(i).right() < tabs.width()}
    there = [index for index in range(tabs.count()) if not tabs.is_removed(index)]
    return [index for index in there if (index in listed) == (index in seen)]


def cut_parts(window: MainWindow) -> list[str]:
    """Parts of the middle's head that reach beyond it."""
    column, cut = window.parts.centre.columns[0], []
    for part in (column.tabs, column.tabs.more_button, column.header.tools, window.parts.centre.split_button):
        left = part.mapTo(window.parts.centre, part.rect().topLeft()).x()
        if part.isVisible() and not 0 <= left <= window.parts.centre.width() - part.width():
            cut.append(type(part).__name__)
    return cut


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("width", "scale"), every(3, [(900, 1.5), (1000, 1.0), (1280, 1.5), (1280, 1.0), (1920, 1.0), (900, 1.0)])
)
def test_every_view_can_be_reached_at_every_width(window: MainWindow, width: int, scale: float, theme: str) -> None:
    window.parts.appearance.set_theme(theme)
    window.parts.appearance.set_font_scale(scale)
    window.resize(width, 800)
    window.parts.centre.set_view_available("branches", True)
    for number in range(window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        QApplication.processEvents()
        tabs = window.parts.centre.columns[0].tabs
        assert tabs.isTabVisible(tabs.currentIndex())
        assert tabs_out_of_sight(window) == []
        assert cut_parts(window) == []


def test_tools_are_beside_tabs_in_wide_window(window: MainWindow) -> None:
    column = window.parts.centre.columns[0]
    window.parts.centre.show_view("tokens")
    window.resize(1280, 800)
    QApplication.processEvents()
    assert column.header.tools.mapTo(column, column.header.tools.rect().center()).y() < column.tabs.height() + 5
    assert not column.tabs.more_button.isVisible()
    window.resize(900, 600)
    QApplication.processEvents()
    assert column.header.tools.mapTo(column, column.header.tools.rect().center()).y() > column.tabs.height()


@pytest.mark.parametrize("width", [900, 1200, 1280, 1366])
def test_tab_of_branches_does_not_move_what_is_below_the_tabs(window: MainWindow, width: int) -> None:
    """It comes and goes as the answers of a chat are switched."""
    column = window.parts.centre.columns[0]
    window.resize(width, 800)
    window.parts.centre.show_view("chat")
    tops, tools = set(), set()
    for is_available in (False, True, False):
        window.parts.centre.set_view_available("branches", is_available)
        QApplication.processEvents()
        tops.add(column.stack.y())
        tools.add(column.header.tools.mapTo(column, column.header.tools.rect().topLeft()).y())
        assert tabs_out_of_sight(window) == []
        assert cut_parts(window) == []
    assert len(tops) == len(tools) == 1


def test_tab_menu_selects_view(window: MainWindow) -> None:
    window.parts.appearance.set_font_scale(1.5)
    window.resize(900, 600)
    QApplication.processEvents()
    tabs = window.parts.centre.columns[0].tabs
    action = next(action for action in tabs.more_button.menu().actions() if action.text().startswith("Compare"))
    assert action.isVisible()
    action.trigger()
    assert window.parts.centre.columns[0].current_name == "compare"
    assert tabs.isTabVisible(tabs.currentIndex())


def test_setting_names_fit_on_one_line(window: MainWindow) -> None:
    """`test_layout` measures the larger types."""
    for strategy in strategies.registry.values():
        window.parts.settings_controller.choose(strategy=strategy.name)
        window.parts.setup.parameters.set_all_open(True)
        QApplication.processEvents()
        for row in window.parts.setup.parameters.rows.values():
            label = row.label
            assert isinstance(label, WrappedLabel)
            flags = int(Qt.TextFlag.TextWordWrap)
            drawn = label.fontMetrics().boundingRect(0, 0, label.width(), 9999, flags, label.text())
            assert drawn.width() <= label.width(), label.text()
            assert drawn.height() <= label.height(), label.text()
            assert drawn.height() < 2 * label.fontMetrics().height(), label.text()


@pytest.mark.parametrize(("scale", "width"), [(1.0, 1280), (1.0, 900), (1.5, 1280), (1.5, 900)])
def test_side_panels_are_not_clipped(qtbot: QtBot, window: MainWindow, scale: float, width: int) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(width, 800)
    run(qtbot, window)
    QApplication.processEvents()
    for part in (window.parts.inspector, window.parts.setup):
        area = part.findChild(QScrollArea)
        assert area.widget().width() <= area.viewport().width()
    assert sum(window.parts.splitter.sizes()) <= width
    assert window.parts.splitter.sizes()[1] >= window.parts.centre.minimumSizeHint().width()


@pytest.mark.parametrize(("scale", "size"), [(1.0, (1280, 800)), (1.5, (1280, 800)), (1.5, (900, 600))])
def test_error_banner_with_details_is_not_clipped(window: MainWindow, scale: float, size: tuple[int, int]) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(*size)
    banner = window.parts.centre.error_banner
    cause = "The prompt has 3,602 tokens, 1,554 more than the model's context of 2,048."
    banner.show_message("The prompt cannot be used", cause, "Shorten it, or choose another model.", "line\n" * 40)
    banner.details_button.click()
    settle(window)
    tops = [(part.mapTo(banner, QPoint(0, 0)).y(), part.height()) for part in _parts_of(banner)]
    edges = [(top, top + height - 1) for top, height in tops]
    assert all(bottom < top for (_top, bottom), (top, _bottom) in pairwise(edges))
    assert edges[-1][1] < banner.height()
    drawn = banner.cause.fontMetrics().boundingRect(banner.cause.rect(), int(Qt.TextFlag.TextWordWrap), cause)
    assert drawn.height() <= banner.cause.height()
    assert window.parts.centre.columns[0].stack.height() > 40
    banner.dismiss()
    QApplication.processEvents()
    assert window.parts.centre.messages.height() == 0


def _parts_of(banner: Banner) -> tuple[QWidget, ...]:
    return banner.title, banner.cause, banner.remedy, banner.details_button, banner.details


def test_settings_fields_are_left_aligned(window: MainWindow) -> None:
    window.parts.dialogs.open_settings()
    dialog = window.findChild(QDialog, "settingsDialog")
    QApplication.processEvents()
    names = ("themeChoice", "scaleChoice", "deviceChoice", "threadsChoice", "reuseBudget", "historyBudget")
    fields = [dialog.findChild(QWidget, name) for name in names]
    assert len({field.mapTo(dialog, QPoint(0, 0)).x() for field in fields}) == 1
    dialog.close()


def test_settings_dialog_fits_screen_at_any_font_size(window: MainWindow) -> None:
    for scale in (1.0, 2.0):
        window.parts.appearance.set_font_scale(scale)
        window.parts.dialogs.open_settings()
        dialog = window.findChild(QDialog, "settingsDialog")
        settle(dialog)
        assert dialog.height() <= available_rect(dialog).height() - 48
        assert "\n".join(faults(dialog)) == ""
        dialog.close()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
