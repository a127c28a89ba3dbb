"""Help › Documentation and Help › About: what is opened, and the licences."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.control.dialogs import documentation_page
from app.panels.info_dialogs import about_dialog
from tests.ui.windows import open_window


def test_the_built_site_is_preferred_to_the_files_and_the_language_to_english(tmp_path: Path) -> None:
    def add(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        return path

    assert documentation_page("en", tmp_path) is None
    file = add("docs/guide/README.md")
    assert documentation_page("en", tmp_path) == documentation_page("zh_CN", tmp_path) == file
    chinese_file = add("docs/guide/zh_CN/README.md")
    assert documentation_page("zh_CN", tmp_path) == chinese_file
    built = add("dist/site/guide/index.html")
    assert documentation_page("en", tmp_path) == built
    installed = add("site/guide/index.html")
    assert documentation_page("en", tmp_path) == installed
    chinese = add("site/guide/zh_CN/index.html")
    assert documentation_page("zh_CN", tmp_path) == chinese


def test_the_command_opens_a_file_of_this_computer(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(Path(url.toLocalFile())) or True)
    window = open_window(qtbot, config_dir)
    window.parts.actions.do("open_documentation")
    assert [path.is_file() for path in opened] == [True]
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _url: False)
    with qtbot.waitSignal(window.parts.dialogs.noticed) as signal:
        window.parts.actions.do("open_documentation")
    assert "F1" in signal.args[0]


def test_about_lists_the_licences_of_the_libraries(qtbot: QtBot) -> None:
    dialog = about_dialog("1.2.3", None)
    qtbot.addWidget(dialog)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "1.2.3" in texts
    assert any(text.startswith("PySide6_Essentials ") for text in texts)
    assert any("LGPL" in text for text in texts)
    assert any(text.startswith("torch ") for text in texts)
    assert dialog.height() <= 640
