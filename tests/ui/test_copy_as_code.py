"""Copy as code: the window shows the scripts of the shown run, and the clipboard gets the one in front."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.control.dialogs import run_scripts
from decodescope.app.panels.info_dialogs import CodeDialog
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import RunStarted
from tests.ui.layout import faults, settle
from tests.ui.windows import find, run


def opened(window: MainWindow) -> CodeDialog:
    window.parts.actions.do("copy_code")
    return find(window, CodeDialog, "codeDialog")


def test_both_flavours_are_shown_and_copied(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    request = window.session.run.request
    dialog = opened(window)
    assert dialog.reason.isHidden()
    assert f"generate(**inputs, max_new_tokens={request.config['max_new_tokens']}" in dialog.code.toPlainText()
    dialog.flavour.findChild(QPushButton, "coreSegment").click()
    expected = core.as_code(request, "core", model=request.model)
    assert dialog.code.toPlainText() == expected
    dialog.copy.click()
    assert QGuiApplication.clipboard().text() == expected


def test_script_uses_settings_of_shown_run(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    window.parts.setup.prompt.set_prompt("Something else", False)
    assert "Something else" not in opened(window).code.toPlainText()


def test_single_script_shows_reason(qtbot: QtBot, window: MainWindow) -> None:
    requested = RunRequest("Once", strategy="contrastive", load=LoadRequest("storyteller"))
    scripts, reason = run_scripts(Run(requested))
    assert list(scripts) == ["core"]
    dialog = CodeDialog(scripts, reason)
    qtbot.addWidget(dialog)
    dialog.show()
    assert "no longer contains contrastive search" in dialog.reason.text()
    assert dialog.reason.isVisible()


def test_copy_code_without_run_shows_notice(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.actions.do("copy_code")
    assert not window.findChildren(CodeDialog)
    assert "Run something first" in window.parts.centre.notice_banner.cause.text()


def test_script_has_token_ids_and_device_of_run() -> None:
    requested = RunRequest("Once", config={"bad_words_ids": ["wolf"]}, load=LoadRequest("storyteller"))
    run = Run(requested)
    run.apply([_started((("bad_words_ids", [[7, 9]]),))])
    assert all('"bad_words_ids": [[7, 9]]' in script or "bad_words_ids=[[7, 9]]" in script
               for script in run_scripts(run)[0].values())  # fmt: skip
    on_card = Run(requested)
    on_card.apply([replace(_started(()), device="cuda:0", dtype="bfloat16")])
    scripts, _ = run_scripts(on_card)
    assert '.to("cuda:0")' in scripts["transformers"]
    assert 'decodescope.load("storyteller")' in scripts["core"], "the core chooses the device as it did"


def _started(settings: tuple[tuple[str, object], ...]) -> RunStarted:
    return RunStarted(
        strategy="greedy", model="storyteller", device="cpu", dtype="float32", cache="dynamic", seed=0, prompt=(),
        settings=settings, sequences=1, vocabulary=2048, context=2048,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_code_dialog_is_not_clipped(qtbot: QtBot, window: MainWindow, scale: float) -> None:
    run(qtbot, window)
    window.parts.appearance.set_font_scale(scale)
    dialog = opened(window)
    settle(dialog)
    assert "\n".join(faults(dialog)) == ""
