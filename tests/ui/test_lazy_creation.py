"""Parts of a window are created on first use, and work then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QIcon, QImage
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.theme.theme import theme_for
from decodescope.app.views.tokens.token_strips import MediaStrip, ScoreStrip
from decodescope.app.widgets.icons import IconButton
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import run

LATE = {
    "html",
    "decodescope.app.panels.grammar_editor",
    "decodescope.app.session.engine",
    "decodescope.app.views.tokens.branches",
    "decodescope.app.views.tokens.excerpt",
    "decodescope.app.views.tokens.token_strips",
    "decodescope.app.views.tokens.accessible_text",
    "decodescope.app.widgets.accessibility.qt_interfaces",
}
"""Modules of which nothing is seen in a window that has just been opened."""


def test_first_frame_imports_no_unused_modules(config_dir: Path) -> None:
    """In an interpreter of its own: this one has long imported everything."""
    code = (
        "import sys; from PySide6.QtWidgets import QApplication; a = QApplication([]); from decodescope import app;"
        f"w = app.build_window({str(config_dir)!r}, assembled=False); w.show(); w.assemble();"
        f"w.resize(1280, 800); w.grab(); print(*sorted({LATE!r} & set(sys.modules))); w.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


def popups(window: MainWindow) -> list[QWidget]:
    return [part for part in window.findChildren(QWidget) if part.objectName().endswith("ComboPopup")]


def test_picker_popup_is_created_when_opened(window: MainWindow) -> None:
    picker = window.parts.toolbar.strategy
    assert not picker.is_open
    assert popups(window) == []
    window.parts.appearance.set_font_scale(1.5)
    picker.showPopup()
    assert picker.is_open
    theme = picker.popup.delegate.theme
    assert theme is not None
    assert theme.scale == 1.5
    picker.hidePopup()
    window.parts.appearance.set_font_scale(1.0)
    assert picker.popup.current_theme.scale == 1.0


def test_accessible_interface_does_not_create_popup(window: MainWindow) -> None:
    picker = window.parts.toolbar.cache
    interface = picker.accessible_interface()
    assert interface.state().collapsed
    assert popups(window) == []


def test_banner_creates_widgets_on_first_message(window: MainWindow) -> None:
    banner = window.parts.centre.notice_banner
    assert banner.last_title == ""
    assert banner.findChildren(QWidget) == []
    window.parts.messages.withdraw_notice("")
    window.parts.messages.show_notice("It is so.", "Know")
    assert (banner.last_title, banner.title.text(), banner.cause.text()) == ("Know", "Know", "It is so.")
    theme = window.parts.appearance.theme
    assert banner.details.maximumHeight() == theme.px(132)
    window.parts.messages.withdraw_notice("Know")
    assert banner.isHidden()


def test_text_run_creates_no_media_or_score_strip(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    assert window.findChildren(MediaStrip) == []
    assert window.findChildren(ScoreStrip) == []


def shade(button: IconButton, mode: QIcon.Mode) -> QColor:
    """The colour of most of an icon's ink."""
    image = button.icon().pixmap(QSize(48, 48), mode).toImage().convertToFormat(QImage.Format.Format_ARGB32)
    inked = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return max((color for color in inked), key=QColor.alpha)


def test_disabled_icon_button_uses_faint_theme_color(qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    button, theme = IconButton("close", "Close", holder), theme_for("dark")
    button.set_theme(theme)
    assert shade(button, QIcon.Mode.Normal).name() == theme.muted
    holder.setEnabled(False)
    assert shade(button, QIcon.Mode.Disabled).name() == theme.faint
    other = theme_for("light")
    button.set_theme(other)
    assert shade(button, QIcon.Mode.Disabled).name() == other.faint


@pytest.mark.parametrize("scale", [1.0, 1.3, 2.0])
def test_tab_widths_match_computed_total(window: MainWindow, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    tabs = window.parts.centre.columns[0].tabs
    for tight in (True, False, True):
        tabs.fit(10_000, tight)
        drawn = [tabs.tabSizeHint(index).width() for index in range(tabs.count())]
        present = [width for index, width in enumerate(drawn) if not tabs.is_removed(index)]
        assert tabs.total_width(tight) == sum(present)
