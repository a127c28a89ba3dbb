"""All windows of the program: none is forgotten, each fits on the screen, shows its texts, and is used by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QWidget,
)
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.panels.lens_page import LensDialog
from decodescope.app.theme.language import set_language
from decodescope.app.widgets import dialog as dialog_module
from decodescope.app.widgets.dialog import WINDOW_FRAME, FittedScrollArea
from decodescope.app.widgets.screen import available_rect
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import ENGLISH
from tests.ui.dialogs import WINDOWS, dialog_of, own_windows, window_classes
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import remaining
from tests.ui.test_dialog_keys import focusable_widgets, steps
from tests.ui.test_tab_order import without_visible_focus
from tests.ui.windows import run

SOME = ("help", "engine", "server on", "claims", "lessons", "presenter", "near misses", "preset name")
"""Windows that are tried in the default suite; test_layout_full.py and test_dialog_keys.py try others there."""


def opened(qtbot: QtBot, folder: Path, language: str = ENGLISH) -> MainWindow:
    window = build_window(folder, ScriptedEngine(), language=language)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitExposed(window):
        window.show()
    run(qtbot, window)
    return window


@pytest.fixture
def language() -> Iterator[None]:
    """Restore the language."""
    yield
    set_language(ENGLISH)


def test_every_window_of_the_program_is_tried() -> None:
    assert window_classes() == {case.shows for case in WINDOWS.values()}


def test_dialogs_of_the_program_fit_on_the_screen_by_their_base_class() -> None:
    dialogs = [one for one in own_windows() if "QDialog" in one.ancestors]
    assert [one.name for one in dialogs if "BaseDialog" not in one.ancestors] == []


def check_sizes(qtbot: QtBot, window: MainWindow, names: tuple[str, ...], scale: float) -> None:
    """Nothing is cut or overlaps, and the window with its frame is not larger than the screen."""
    window.parts.appearance.set_font_scale(scale)
    found = []
    for name in names:
        with dialog_of(qtbot, window, name) as dialog:
            found += [f"{name}: {fault}" for fault in remaining(dialog)]
            room = available_rect(dialog).size() - WINDOW_FRAME
            if dialog.width() > room.width() or dialog.height() > room.height():
                found.append(f"{name} is {dialog.width()} × {dialog.height()}; there is room for {room}")
    assert "\n".join(found) == ""


def test_windows_fit_on_screen_in_large_type(qtbot: QtBot, config_dir: Path) -> None:
    check_sizes(qtbot, opened(qtbot, config_dir), SOME, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("language_name", [ENGLISH, "zh_CN"])
@pytest.mark.usefixtures("language")
def test_all_windows_fit_on_screen(qtbot: QtBot, config_dir: Path, language_name: str, scale: float) -> None:
    check_sizes(qtbot, opened(qtbot, config_dir, language_name), tuple(WINDOWS), scale)


def keyboard_faults(dialog: QWidget) -> list[str]:
    """Return the controls that Tab does not reach, and those on which the focus is not seen."""
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    reached = set(steps(dialog))
    missing = focusable_widgets(dialog) - reached  # Qt takes the buttons out of it that arrow keys reach
    return [f"Tab does not reach {part.objectName() or part.accessibleName() or part!r}" for part in missing] + (
        without_visible_focus(dialog, steps(dialog))
    )


def check_keys(qtbot: QtBot, window: MainWindow, names: tuple[str, ...]) -> None:
    found = []
    for name in names:
        with dialog_of(qtbot, window, name) as dialog:
            if isinstance(dialog, LensDialog):
                qtbot.waitUntil(dialog.stop.isHidden)  # its button goes when all is computed
            found += [f"{name}: {fault}" for fault in keyboard_faults(dialog)]
    assert "\n".join(found) == ""


def test_tab_reaches_all_controls_of_windows(qtbot: QtBot, config_dir: Path) -> None:
    check_keys(qtbot, opened(qtbot, config_dir), SOME)


@pytest.mark.slow
def test_tab_reaches_all_controls_of_all_windows(qtbot: QtBot, config_dir: Path) -> None:
    check_keys(qtbot, opened(qtbot, config_dir), tuple(WINDOWS))


def text_left(field: QWidget) -> int:
    """Return where the text of a field begins, in pixels from the left edge of its frame."""
    picture = field.grab().toImage()
    ground = picture.pixelColor(5, picture.height() // 2).lightness()

    def has_text(x: int) -> bool:
        return any(abs(picture.pixelColor(x, y).lightness() - ground) > 90 for y in range(6, picture.height() - 6))

    return next(x for x in range(3, picture.width()) if has_text(x))


def test_numbers_begin_where_other_fields_do(qtbot: QtBot, config_dir: Path) -> None:
    window = opened(qtbot, config_dir)
    window.parts.appearance.set_theme("light")
    found = []
    for name in ("settings", "demo", "atlas", "scale ring", "near misses"):
        with dialog_of(qtbot, window, name) as dialog:
            boxes = [box for box in dialog.findChildren(QAbstractSpinBox) if box.isVisible() and box.isEnabled()]
            combos = [box for box in dialog.findChildren(QComboBox) if box.isVisible() and box.isEnabled()]
            assert boxes
            assert combos
            for box in boxes:
                box.lineEdit().deselect()
            expected = text_left(combos[-1])
            found += [f"{name}: {left}, {expected}" for box in boxes if abs((left := text_left(box)) - expected) > 2]
    assert found == []


def test_settings_have_no_horizontal_scroll_bar(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The height that labels need is known when they have their width: both decide whether the page scrolls."""
    window = opened(qtbot, config_dir)
    for height in range(1000, 1400, 20):
        monkeypatch.setattr(dialog_module, "available_rect", lambda _widget, height=height: QRect(0, 0, 1920, height))
        with dialog_of(qtbot, window, "settings") as dialog:
            (area,) = dialog.findChildren(FittedScrollArea)
            assert area.horizontalScrollBar().maximum() == 0, height


@pytest.mark.usefixtures("language")
def test_tables_in_chinese_have_no_horizontal_scroll_bar(qtbot: QtBot, config_dir: Path) -> None:
    window = opened(qtbot, config_dir, "zh_CN")
    for name in ("about", "keys", "used", "help"):
        with dialog_of(qtbot, window, name) as dialog:
            assert [area.horizontalScrollBar().maximum() for area in dialog.findChildren(QScrollArea)] == [0], name


def test_focus_does_not_move_the_text_of_a_choice(qtbot: QtBot, config_dir: Path) -> None:
    window = opened(qtbot, config_dir)
    for name in ("weights", "speed"):
        with dialog_of(qtbot, window, name) as dialog:
            choices = [one for one in dialog.findChildren(QAbstractButton) if isinstance(one, QRadioButton | QCheckBox)]
            pictures = []
            for choice in (choices[0], choices[-1]):
                choice.setFocus(Qt.FocusReason.TabFocusReason)
                picture = choices[0].grab()
                right = QRect(picture.width() // 4, 0, picture.width(), picture.height())
                pictures.append((picture.toImage(), picture.copy(right).toImage()))
            (with_focus, text_with_focus), (without, text_without) = pictures
            assert with_focus != without
            assert text_with_focus == text_without, name


def test_buttons_of_a_row_have_one_height(qtbot: QtBot, config_dir: Path) -> None:
    window = opened(qtbot, config_dir)
    found = []
    for name in ("server", "drafts", "studies", "export"):
        with dialog_of(qtbot, window, name) as dialog:
            rows: dict[int, dict[str, int]] = {}
            for button in dialog.findChildren(QPushButton):
                if button.isVisible() and button.property("role") in (None, "primary"):
                    middle = button.mapTo(dialog, button.rect().center()).y() // 8
                    rows.setdefault(middle, {})[button.text()] = button.height()
            assert any(len(row) > 1 for row in rows.values())
            found += [f"{name}: {row}" for row in rows.values() if len(set(row.values())) > 1]
    assert found == []
