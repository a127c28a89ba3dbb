"""The command palette: found by a few letters, and nothing in it without effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.features.palette.controller.entry import PaletteEntry
from decodescope.app.features.palette.controller.entry_sources import EXCLUDED
from decodescope.app.features.tours.state.tour_file import names_and_titles
from decodescope.app.panels.commands import SHORTCUTS
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.core import caches, glossary, strategies
from decodescope.resources import language
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, activate, find, open_window, run, whole

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return activate(qtbot, whole(open_window(qtbot, config_dir)))


def palette(window: MainWindow, typed: str = "") -> QLineEdit:
    """Open it by its key, and type."""
    QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_K, CTRL)
    field = find(window, QLineEdit, "commandField")
    assert find(window, QWidget, "commandPalette").isVisible()
    assert QApplication.focusWidget() is field
    QTest.keyClicks(field, typed)
    return field


def rows(window: MainWindow) -> list[str]:
    panel = window.parts.palette.panel
    assert panel is not None
    return [panel.model.index(row).data() for row in range(panel.model.rowCount())]


def test_palette_is_not_created_with_window(window: MainWindow) -> None:
    assert window.parts.palette.panel is None
    assert not window.findChildren(QWidget, "commandPalette")


def test_temp_and_enter_focus_temperature(window: MainWindow) -> None:
    field = palette(window, "temp")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert not find(window, QWidget, "commandPalette").isVisible()
    assert QApplication.focusWidget() is window.parts.setup.parameters.rows["temperature"].editor


def test_selected_advanced_setting_is_unfolded_and_visible(qtbot: QtBot, window: MainWindow) -> None:
    panel = window.parts.setup.parameters
    row = next(row for row in reversed(panel.rows.values()) if row.parameter.advanced and not row.unavailable)
    window.parts.history_panel.show()
    window.parts.layout.toggle_setup()
    field = palette(window, row.parameter.title)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert QApplication.focusWidget() is row.editor
    qtbot.waitUntil(lambda: not row.editor.visibleRegion().isEmpty())


def test_setting_of_other_strategy_names_that_strategy(window: MainWindow) -> None:
    window.parts.toolbar.strategy.select_data("greedy")
    field = palette(window, "temperature")
    while window.parts.palette.panel.row.kind != "Setting":
        QTest.keyClick(field, Qt.Key.Key_Down)
    QTest.keyClick(field, Qt.Key.Key_Return)
    panel = window.parts.palette.panel
    assert panel is not None
    assert panel.isVisible()
    assert panel.description_label.text() == "Greedy does not have this setting; Sampling does."


def test_escape_closes_palette_and_restores_focus(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.messages.show_notice("Something to know.")
    spin = window.parts.toolbar.seed.spin
    spin.setFocus()
    field = palette(window, "x")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not find(window, QWidget, "commandPalette").isVisible()
    assert QApplication.focusWidget() is spin
    assert not window.parts.centre.notice_banner.isHidden()


def test_shortcut_and_focus_change_close_palette(qtbot: QtBot, window: MainWindow) -> None:
    palette(window)
    QTest.keyClick(window.parts.palette.panel.field, Qt.Key.Key_K, CTRL)
    assert not find(window, QWidget, "commandPalette").isVisible()
    palette(window)
    window.parts.setup.prompt.editor.setFocus(Qt.FocusReason.MouseFocusReason)
    assert not find(window, QWidget, "commandPalette").isVisible()
    assert QApplication.focusWidget() is window.parts.setup.prompt.editor


def test_arrow_keys_wrap_around_and_enter_runs_current_row(window: MainWindow) -> None:
    field = palette(window, "beam")
    panel = window.parts.palette.panel
    assert panel is not None
    last = panel.model.rowCount() - 1
    QTest.keyClick(field, Qt.Key.Key_Up)
    assert panel.list.currentIndex().row() == last
    QTest.keyClick(field, Qt.Key.Key_Down)
    assert panel.list.currentIndex().row() == 0
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert window.parts.chosen.strategy.name == "beam_search"
    window.parts.settings_controller.choose(strategy="greedy")  # what is in use cannot be chosen
    palette(window)
    assert rows(window)[0] == "Beam search"  # used last


def run_and_keep(qtbot: QtBot, window: MainWindow) -> None:
    """A run that is among those kept."""
    with qtbot.waitSignal(window.history.runSaved, timeout=WAIT_MS):
        run(qtbot, window)


def test_palette_contains_every_item(qtbot: QtBot, window: MainWindow) -> None:
    run_and_keep(qtbot, window)
    there = {entry.key for entry in window.parts.palette.gather()}
    parts = window.parts
    wanted = {f"action.{name}" for name in parts.actions.table if name not in EXCLUDED}
    wanted |= {f"strategy.{name}" for name in strategies.registry} | {f"cache.{name}" for name in caches.registry}
    wanted |= {f"view.{name}" for name in ("tokens", "chat", "tree", "speculation", "memory", "compare", "branches")}
    wanted |= {f"model.{entry.name}" for entry in parts.chosen.model.entries}
    wanted |= {f"example.{example.id}" for example in parts.setup.prompt.examples}
    wanted |= {f"setting.{name}" for name in (*parts.setup.parameters.rows, *parts.setup.cache_parameters.rows)}
    wanted |= {f"tour.{name}" for name, _title in names_and_titles()} | {f"term.{name}" for name in glossary.terms()}
    wanted |= {"preset.Predictable", "preset.Surprising", f"run.{parts.session.run.id}", "theme.dark", "size.1.5"}
    assert wanted - there == set()


def test_every_action_has_a_title() -> None:
    """Those without a key too: the palette lists them by it."""
    assert all(shortcut.title and shortcut.group for shortcut in SHORTCUTS)


def tree(window: MainWindow) -> TreeView:
    view = window.parts.centre.columns[0].view("tree")
    assert isinstance(view, TreeView)
    return view


def tokens(window: MainWindow) -> TokenView:
    view = window.parts.centre.columns[0].view("tokens")
    assert isinstance(view, TokenView)
    return view


def visible_state(window: MainWindow) -> tuple[object, ...]:
    """Return the visible state: widgets, windows, focus, run state and clipboard."""
    words = ("text", "checked", "currentIndex", "value", "plainText", "enabled")
    shown = [
        (id(part), *(part.property(word) for word in words))
        for part in window.findChildren(QWidget)
        if part.isVisible()
    ]
    tops = [(id(top), type(top).__name__) for top in QApplication.topLevelWidgets() if top.isVisible()]
    run = window.session.run
    clipboard = QApplication.clipboard()
    return (
        shown, tops, id(QApplication.focusWidget()), id(QApplication.activePopupWidget()), window.session.state,
        run and (run.id, run.cursor, run.selected), clipboard.text(), clipboard.image().isNull(),
        tokens(window).area.selection.text, tree(window).canvas.navigation.zoom,
        str(window.parts.settings.appearance), window.isVisible(), window.isFullScreen(),
    )  # fmt: skip


def reset_window(qtbot: QtBot, window: MainWindow) -> None:
    """No dialog, no menu, the first view, nothing under way. A run is not stopped: without text it has no step."""
    qtbot.waitUntil(lambda: not window.session.busy, timeout=WAIT_MS)
    while (popup := QApplication.activePopupWidget()) is not None:
        popup.close()
    for top in QApplication.topLevelWidgets():
        if top.isVisible() and top is not window:
            top.close()
    window.parts.presentation.leave()
    if window.parts.tours.is_on:
        window.parts.tours.player.leave()
    window.parts.messages.dismiss()
    window.parts.centre.show_view("tokens")
    tree(window).canvas.navigation.zoom_by(1.1)  # so that there is something to fit
    QApplication.clipboard().clear()
    QApplication.sendPostedEvents(None, 0)
    window.activateWindow()
    window.parts.timeline.setFocus()
    QApplication.processEvents()


def entries_without_effect(qtbot: QtBot, window: MainWindow, entries: Iterator[PaletteEntry]) -> list[str]:
    """Entries that neither change anything nor say why not."""
    found = []
    for gathered in entries:
        reset_window(qtbot, window)
        current = {entry.key: entry for entry in window.parts.palette.gather()}  # without those of other settings
        entry = current.get(gathered.key)
        if entry is None or entry.reason:
            continue
        before = visible_state(window)
        entry.run()
        QApplication.processEvents()
        if visible_state(window) == before:
            found.append(entry.key)
    reset_window(qtbot, window)
    return found


def fresh_entries(window: MainWindow, done: set[str]) -> Iterator[PaletteEntry]:
    """Every entry once, a kind at a time: what is done changes what can be."""
    kinds: set[str] = set()
    while left := [
        entry for entry in window.parts.palette.gather() if not {kind_of(entry), entry.key} & (done | kinds)
    ]:
        kind = kind_of(left[0])
        kinds |= {kind} & {"run", "picked"}  # each makes others of its kind
        for entry in left:
            if kind_of(entry) == kind:
                done.add(entry.key)
                yield entry


def kind_of(entry: PaletteEntry) -> str:
    return entry.key.partition(".")[0]


OTHERS = {"action.quit", *(f"action.speak_{name}" for name in ("as_system", "english", "chinese"))}
"""Entries that close or rebuild the window; they are tested separately."""
OTHERS |= {f"action.{name}" for name in ("new_text", "cut", "copy", "paste", "select_all")}
"""What depends on the text field that has the cursor, or leaves nothing to run: tried in `test_menu_bar`."""
OTHERS |= {"action.find_engines", "action.open_documentation"}
"""Shown in the open model picker, or by another program: tried in `test_local_engines` and `test_documentation`."""


MANY = ("setting", "strategy", "cache", "model", "example", "tour", "size", "term")
"""Kinds whose entries are all made by one line: a few stand for all of them, but in the long form."""


def similar_entries(window: MainWindow) -> set[str]:
    """All but the first three of each of those kinds."""
    keys = [entry.key for entry in window.parts.palette.gather()]
    return {key for kind in MANY for key in [key for key in keys if key.startswith(f"{kind}.")][3:]}


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.fuzz)])
def test_every_entry_has_effect(qtbot: QtBot, window: MainWindow, every: bool) -> None:
    run_and_keep(qtbot, window)
    vain = entries_without_effect(
        qtbot, window, fresh_entries(window, OTHERS | (set() if every else similar_entries(window)))
    )
    assert not vain, vain
    next(entry for entry in window.parts.palette.gather() if entry.key == "action.quit").run()
    assert window.is_closed


def test_language_is_switched_by_palette(qtbot: QtBot, window: MainWindow) -> None:
    QTest.keyClick(palette(window, "chinese"), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: language.current_language() == "zh_CN")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    QTest.keyClick(palette(window, "temperature"), Qt.Key.Key_Return)
    assert QApplication.focusWidget() is window.parts.setup.parameters.rows["temperature"].editor
    palette(window).setText("温度")
    assert rows(window)[0] == "温度"
    QTest.keyClick(window.parts.palette.panel.field, Qt.Key.Key_Escape)
    QTest.keyClick(palette(window, "english"), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: language.current_language() == "en")


@pytest.mark.every(2)
@pytest.mark.parametrize(("size", "scale", "theme"), [((1280, 800), 1.0, "light"), ((900, 600), 2.0, "dark")])
def test_palette_is_not_clipped(window: MainWindow, size: tuple[int, int], scale: float, theme: str) -> None:
    window.resize(*size)
    window.parts.settings.appearance.theme = theme
    window.parts.appearance.set_font_scale(scale)
    palette(window, "a")
    panel = window.parts.palette.panel
    assert panel is not None
    settle(window)
    assert window.rect().contains(panel.geometry())
    assert faults(panel) == []
