"""The memory estimate of the current settings at the bottom of the setup panel."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.control.memory_fit import MemoryEstimate, MemoryQuery
from decodescope.app.session.queries.base import Answer
from decodescope.app.window.main_window import MainWindow
from decodescope.core.memory import estimate as fit
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window, run

LONG_MS = 6 * WAIT_MS


TOLD = MemoryEstimate(
    summary="Needs 9 MiB of 1 MiB free: 8 MiB for weights, 1 MiB for the cache (Dynamic, 20 tokens).",
    advice="It does not fit. It would fit with 2 beams.",
    tokens=20,
    rows=1,
)


def is_fit(answer: Answer) -> bool:
    return isinstance(answer.query, MemoryQuery)


def line(window: MainWindow) -> QLabel:
    return find(window, QLabel, "fitLine")


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.answered, timeout=LONG_MS, check_params_cb=is_fit):
        window.show()
    return window


@pytest.mark.slow
def test_memory_estimate_follows_settings(qtbot: QtBot, window: MainWindow) -> None:
    seen = []
    for change in (
        lambda: window.parts.settings_controller.set_values({"max_new_tokens": 100}),
        lambda: window.parts.settings_controller.set_values({"max_new_tokens": 200}),
        lambda: window.parts.settings_controller.set_values({"max_new_tokens": 200, "num_return_sequences": 3}),
        lambda: window.parts.settings_controller.choose(cache="quantized"),
        lambda: window.parts.setup.prompt.set_prompt("Once upon a time " * 20),
        lambda: window.parts.settings_controller.choose(model="summarizer"),
    ):
        with qtbot.waitSignal(window.session.answered, timeout=LONG_MS, check_params_cb=is_fit) as received:
            change()
        seen.append(received.args[0].result.needed_bytes)
        assert line(window).text().startswith("Needs ")
        assert line(window).isVisible()
    assert f"{received.args[0].result.tokens:,} tokens" in str(
        window.parts.toolbar.model.itemData(0, Qt.ItemDataRole.ToolTipRole)
    )
    assert len(set(seen)) == len(seen)
    assert seen[0] < seen[1] < seen[2]
    assert seen[3] < seen[2]
    assert "200 tokens" not in line(window).text(), "where it fits, few words are enough"
    window.close()


def test_estimate_without_free_memory_suggests_remedy(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "free_memory", lambda: 0)
    with qtbot.waitSignal(window.session.answered, timeout=LONG_MS, check_params_cb=is_fit) as received:
        window.parts.settings_controller.choose(strategy="beam_search")
    monkeypatch.setattr(fit, "free_memory", lambda: 2 * received.args[0].result.cache)
    window.parts.settings_controller.set_values({"max_new_tokens": 400, "num_beams": 8})
    qtbot.waitUntil(lambda: "It would fit with at most" in window.parts.setup.help.text(), timeout=LONG_MS)
    assert "beams" in line(window).accessibleDescription()
    assert line(window).property("role") == "warning"
    window.close()


def test_estimate_waits_for_end_of_run_and_hides_when_unknown(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(estimate=TOLD)
    window = open_window(qtbot, config_dir, engine)
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS, check_params_cb=is_fit):
        run(qtbot, window)
    assert line(window).text() == TOLD.summary.partition(":")[0]
    assert window.parts.setup.help.text() == f"{TOLD.summary} {TOLD.advice}"
    engine.estimate = None
    with qtbot.waitSignal(window.session.answered, timeout=WAIT_MS, check_params_cb=is_fit):
        window.parts.settings_controller.set_values({"max_new_tokens": 7})
    assert line(window).text() == ""
    assert TOLD.advice not in window.parts.setup.help.text()
    assert engine.reckoned[-1].settings["max_new_tokens"] == 7
    window.close()
