"""Step internals and grammar editor are not clipped in small windows, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.panels.grammar_editor import GrammarEditor, SchemaForm
from decodescope.app.panels.lens_page import LensDialog
from decodescope.app.theme.language import set_language
from decodescope.app.views.inspector.step_internals import StepInternalsPanel
from decodescope.app.views.inspector.what_if_card import WhatIfContent
from decodescope.app.window.main_window import MainWindow
from decodescope.resources.language import ENGLISH
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import remaining
from tests.ui.test_grammar_editor import FIELDS, choose
from tests.ui.test_step_internals import is_inspected, request_internals
from tests.ui.test_watermark_view import story
from tests.ui.windows import WAIT_MS, run


@pytest.fixture(params=[ENGLISH, "zh_CN"])
def window(qtbot: QtBot, config_dir: Path, qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[MainWindow]:
    """The smallest one, in large type and dark."""
    window = build_window(config_dir, ScriptedEngine(), language=request.param)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    window.parts.appearance.set_theme("dark")
    window.parts.appearance.set_font_scale(1.5)
    window.resize(900, 600)
    yield window
    set_language(ENGLISH)


def check(root: QWidget, what: str) -> None:
    assert "\n".join(remaining(root)) == "", what


@pytest.mark.every(2)
def test_step_internals_and_grammar_editor_are_not_clipped(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.parameters.set_all_open(True)
    editor = window.findChild(GrammarEditor)
    for kind, text in (("json_schema", "{}"), ("regex", "(a")):
        choose(editor, kind)
        editor.text.setPlainText(text)
        check(window, f"a grammar: {kind}")
    choose(editor, "")
    form = SchemaForm(FIELDS, window)
    form.show()
    check(form, "the form of a schema")
    assert form.rows[0].name.width() > form.fontMetrics().horizontalAdvance("x" * 10), "names can be read"
    form.close()
    run(qtbot, window)
    window.session.select_token(3)
    part = window.findChild(StepInternalsPanel)
    for kind in ("layers", "influence", "attention"):
        request_internals(qtbot, window, part, kind)
        check(window, kind)
    with qtbot.waitSignal(window.session.answered, check_params_cb=is_inspected, timeout=WAIT_MS):
        qtbot.mouseClick(part.page, Qt.MouseButton.LeftButton)
    page = window.findChild(LensDialog)
    check(page, "all tokens, layer by layer")
    page.close()
    window.parts.inspector.show_what_if(WhatIfContent(3, 0, "temperature 0.8 → 1.4, top-p 0.95 → 0.5", error="x " * 40))
    check(window, "what if")
    assert window.session.show(story(0.0, 1.0, 1.0, 0.0))
    window.session.select_token(2)
    check(window, "a watermark")
