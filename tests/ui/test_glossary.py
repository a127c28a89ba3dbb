"""The glossary dialog, and its sentences in tooltips at the current explanation level."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.glossary_dialog import GlossaryDialog
from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.app.theme.theme import panel_stylesheet, theme_for
from decodescope.app.views import VIEWS
from decodescope.app.views.shared.glossary_tooltip import LazyTooltip
from decodescope.core import caches, glossary, strategies
from decodescope.resources import depth
from tests.ui import layout
from tests.ui.windows import open_window, run

pytestmark = pytest.mark.usefixtures("restore_usual_depth")

PARAMETERS = {
    parameter.name: parameter
    for entry in (*strategies.registry.values(), *caches.registry.values())
    for parameter in entry.parameters
}


@pytest.fixture
def dialog(qtbot: QtBot) -> GlossaryDialog:
    made = GlossaryDialog()
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.show()
    return made


def tip_of(widget: QWidget) -> LazyTooltip:
    found = widget.findChild(LazyTooltip, options=Qt.FindChildOption.FindDirectChildrenOnly)
    assert isinstance(found, LazyTooltip)
    return found


def ids(dialog: GlossaryDialog) -> list[str]:
    return [dialog.list.item(row).data(Qt.ItemDataRole.UserRole) for row in range(dialog.list.count())]


def test_search_finds_terms_and_link_opens_source(
    qtbot: QtBot, dialog: GlossaryDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(QUrl(url).toString()))
    assert ids(dialog) == list(glossary.terms())
    qtbot.keyClicks(dialog.field, "top")
    found = ids(dialog)
    assert found[0] == dialog.current_term.id
    assert {"top_k", "top_p", "top_h"} <= set(found) < set(glossary.terms())
    qtbot.keyClick(dialog.field, Qt.Key.Key_Down)
    assert dialog.current_term.id == found[1]
    qtbot.keyClick(dialog.field, Qt.Key.Key_Return)
    dialog.page.link.click()
    assert opened == [glossary.term(found[1]).address] * 2
    qtbot.keyClicks(dialog.field, "xyzzy")
    assert not ids(dialog)
    assert dialog.no_matches.isVisible()


@pytest.mark.parametrize("each", depth.DEPTHS)
def test_sentence_of_current_level_is_first(dialog: GlossaryDialog, each: str) -> None:
    depth.set_depth(each)
    dialog.show_term("temperature")
    dialog.wording_changed()
    reported = [sentence.text() for _, sentence in dialog.page.sentences]
    term = glossary.term("temperature")
    assert reported[0] == term.sentence
    assert set(reported) == {term.plain, term.usual, term.exact}
    assert dialog.page.source.text() == term.source


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_glossary_dialog_is_not_clipped(dialog: GlossaryDialog, scale: float) -> None:
    theme = theme_for("dark", scale)
    dialog.setStyleSheet(theme.stylesheet() + panel_stylesheet(theme))
    for name in ("token_tree", "constraint"):
        dialog.show_term(name)
        layout.settle(dialog)
        assert not layout.faults(dialog)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_tooltip_appends_glossary_sentence(qtbot: QtBot, name: str) -> None:
    row = ParameterRow(PARAMETERS[name])
    qtbot.addWidget(row)
    for each in depth.DEPTHS:
        depth.set_depth(each)
        tip_of(row).refresh_description()
        term = glossary.term_for(f"param.{name}")
        assert term is not None
        shown = _plain(tip_of(row).text())
        assert shown.index(" ".join(row.parameter.help.split())) < shown.index(" ".join(term.sentence.split()))
        described = row.editor.accessibleDescription()
        assert described.startswith(row.parameter.help)
        assert described.endswith(" ".join(term.sentence.split()))
        assert described.count(term.sentence) == 1


def _plain(rich: str) -> str:
    from PySide6.QtGui import QTextDocumentFragment

    return " ".join(QTextDocumentFragment.fromHtml(rich).toPlainText().split())


def test_widgets_have_glossary_tooltips(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    parts = window.parts
    run(qtbot, window)
    toolbar, tabs = parts.toolbar, parts.centre.columns[0].tabs
    parts.actions.do("plain_words")
    for widget, term in ((toolbar.model, "language_model"), (toolbar.draft, "draft"), (toolbar.seed.spin, "seed"),
                         (toolbar.strategy, "sampling"), (toolbar.cache, "dynamic_cache")):  # fmt: skip
        assert glossary.term(term).plain in _plain(tip_of(widget).text())
        assert glossary.term(term).plain in widget.accessibleDescription()
    for index, spec in enumerate(VIEWS):
        place = tabs.tabRect(index).center()
        expected = glossary.term_for(f"view.{spec.name}")
        assert expected is not None
        if tabs.isTabVisible(index):
            assert expected.plain in _plain(tip_of(tabs).text(place))
    explained = [tip for tip in parts.inspector.findChildren(LazyTooltip) if tip.text()]
    assert len(explained) >= 6
    hover = QHelpEvent(QHelpEvent.Type.ToolTip, QPoint(4, 4), toolbar.mapToGlobal(QPoint(4, 4)))
    QApplication.sendEvent(toolbar.strategy, hover)
    assert glossary.term("sampling").plain in _plain(QToolTip.text())
    QToolTip.hideText()


def test_node_reports_name_glossary_terms() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Path("app/views").rglob("*.py"))
    import re

    named = set(re.findall(r'term="([a-z_]+)"', text)) | set(
        re.findall(r'"([a-z_]+)" if bonus else "([a-z_]+)"', text)[0]
    )
    assert named
    assert named <= set(glossary.terms())


def test_glossary_opens_at_requested_term(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    parts = window.parts
    parts.glossary.open_at("param.temperature")
    dialog = window.findChild(GlossaryDialog, "glossary")
    assert dialog.current_term.id == "temperature"
    parts.actions.do("exact_words")
    assert dialog.page.sentences[0][1].text() == glossary.term("temperature").exact
    parts.glossary.open_at("no such thing")
    assert window.findChildren(GlossaryDialog) == [dialog]
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    parts.actions.do("open_glossary")
    assert window.findChild(GlossaryDialog, "glossary") is not None
