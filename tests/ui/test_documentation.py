"""Help › Documentation and Help › About: what is opened, and the licences."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.control import dialogs
from decodescope.app.control.dialogs import documentation_folder
from decodescope.app.panels.documentation import DocumentationBrowser, DocumentationDialog, documentation_pages
from decodescope.app.panels.info_dialogs import about_dialog
from tests.ui.windows import open_window


@pytest.fixture
def dialog(qtbot: QtBot, config_dir: Path) -> DocumentationDialog:
    window = open_window(qtbot, config_dir)
    window.parts.actions.do("open_help")
    button = window.findChild(QPushButton, "help.open_documentation")
    assert button is not None
    button.click()
    found = window.findChild(DocumentationDialog)
    assert found is not None
    return found


def titles(dialog: DocumentationDialog) -> list[str]:
    rows = (dialog.list.item(row) for row in range(dialog.list.count()))
    return [item.text() for item in rows if not item.isHidden()]


def test_documentation_folder_of_checkout_or_installation_is_found(tmp_path: Path) -> None:
    assert documentation_folder(tmp_path) is None
    for place in ("resources/documentation", "docs"):
        page = tmp_path / place / "guide" / "README.md"
        page.parent.mkdir(parents=True)
        page.write_text("# Guide\n")
        assert documentation_folder(tmp_path) == tmp_path / place


def test_every_page_is_listed_once_in_the_language_that_it_has() -> None:
    folder = documentation_folder()
    assert folder is not None
    english, chinese = (documentation_pages(folder, language) for language in ("en", "zh_CN"))
    assert english[0] == folder / "guide" / "README.md"
    assert chinese[0] == folder / "guide" / "zh_CN" / "README.md"
    assert len(english) == len(chinese) == len(set(english)) > 40
    assert folder / "tutorials" / "zh_CN" / "study.md" in chinese
    assert folder / "stages.md" in chinese


def test_a_page_without_a_file_is_generated_and_one_without_a_translation_is_english(
    qtbot: QtBot, tmp_path: Path
) -> None:
    guide = tmp_path / "docs" / "guide"
    (guide / "zh_CN").mkdir(parents=True)
    (guide / "README.md").write_text("# Guide\n")
    (guide / "new.md").write_text("# New page\n")
    (guide / "zh_CN" / "README.md").write_text("# 指南\n\n[a](new.md)\n")
    listed = documentation_pages(tmp_path / "docs", "zh_CN")
    assert guide / "new.md" in listed
    sink = guide / "zh_CN" / "caches" / "sink.md"
    assert sink in listed
    browser = DocumentationBrowser(tmp_path / "docs")
    qtbot.addWidget(browser)
    browser.show_page(sink)
    assert "num_sink_tokens" in browser.toPlainText()
    browser.show_page(guide / "zh_CN" / "README.md")
    browser.follow(QUrl("new.md"))
    assert "New page" in browser.toPlainText()


def test_documentation_opens_offline(dialog: DocumentationDialog, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()) or True)
    assert dialog.isVisible()
    assert "Decodescope" in dialog.browser.toPlainText()
    assert dialog.browser.document().begin().blockFormat().headingLevel() == 1
    dialog.browser.follow(QUrl("strategies/greedy.md"))
    assert dialog.list.currentItem().text() == "Greedy"
    dialog.browser.backward()
    assert dialog.browser.page.name == "README.md"
    dialog.browser.follow(QUrl("https://example.org/"))
    assert opened == ["https://example.org/"]


def test_search_finds_pages_by_words(dialog: DocumentationDialog) -> None:
    everything = titles(dialog)
    dialog.field.setText("sink WINDOW")
    assert "Sink" in titles(dialog)
    assert len(titles(dialog)) < len(everything)
    dialog.field.setText("qqqq")
    assert titles(dialog) == []
    assert dialog.no_matches.isVisible()
    dialog.field.clear()
    assert titles(dialog) == everything


def test_browser_shows_no_files_outside_folder(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "secret.md").write_text("# Secret\n")
    page = tmp_path / "docs" / "page.md"
    page.write_text("# Page\n\n![a](../secret.png) ![b](https://example.org/pixel.png) <!-- hidden -->\n")
    browser = DocumentationBrowser(tmp_path / "docs")
    qtbot.addWidget(browser)
    browser.show_page(page)
    assert "Page" in browser.toPlainText()
    assert "hidden" not in browser.toPlainText()
    for link in ("../secret.md", "file:///etc/passwd", (tmp_path / "secret.md").as_uri()):
        browser.follow(QUrl(link))
        assert browser.page == page
        assert browser.loadResource(0, QUrl(link)) == QByteArray()


def test_missing_documentation_shows_notice(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogs, "documentation_folder", lambda: None)
    window = open_window(qtbot, config_dir)
    with qtbot.waitSignal(window.parts.dialogs.noticed) as signal:
        window.parts.actions.do("open_documentation")
    assert "F1" in signal.args[0]


def test_about_lists_the_licences_of_the_libraries(qtbot: QtBot) -> None:
    dialog = about_dialog("1.2.3", "Native code is turned off.", None)
    qtbot.addWidget(dialog)
    texts = [label.text() for label in dialog.findChildren(QLabel)]
    assert "1.2.3" in texts
    assert any(text.startswith("PySide6_Essentials ") for text in texts)
    assert any("LGPL" in text for text in texts)
    assert any(text.startswith("torch ") for text in texts)
    assert any(text.startswith("libsndfile ") for text in texts)
    assert dialog.height() <= 640
