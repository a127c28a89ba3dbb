"""The status line: figures that are known, and nothing of those that are not."""

from __future__ import annotations

from dataclasses import replace

from pytestqt.qtbot import QtBot

from decodescope.app.panels.status_line import StatusLine
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ModelInfo, RunRequest
from decodescope.core.events import Prefilled, RunStarted
from tests.ui.scripted import make_run


def test_reused_tokens_are_shown_with_prefill_speed_or_alone(qtbot: QtBot) -> None:
    line = StatusLine()
    qtbot.addWidget(line)
    reported = []
    for seconds, reused in ((0.5, 0), (0.5, 3), (0.0, 3)):
        run = make_run()
        run.apply([Prefilled(13, seconds, reused)])
        line.show_run(run)
        reported.append(line.number_labels["prefill"].text())
    line.stop_timer()
    assert reported == ["prefill 26 tok/s", "prefill 20 tok/s · 3 reused", "3 reused"]


def test_settings_button_keeps_place_until_settings_are_known(qtbot: QtBot) -> None:
    """The button stays in its place, and cannot be pressed; behind a run that never began there is none."""
    line = StatusLine()
    qtbot.addWidget(line)
    reported = []
    for begins in (False, True, False):
        run = Run(RunRequest("Once"))
        line.show_run(run)
        reported.append((not line.settings_button.isHidden(), line.settings_button.isEnabled()))
        if begins:
            run.apply(make_run().events[:1])
            line.refresh()
            reported.append((not line.settings_button.isHidden(), line.settings_button.isEnabled()))
    line.show_outcome("failed")
    assert reported == [(False, False), (False, False), (True, True), (True, False)]
    assert line.settings_button.isHidden()


def _started(model: str, device: str = "cpu") -> RunStarted:
    return replace(make_run().events[0], model=model, device=device, dtype="float32")


def test_line_shows_the_model_of_the_run_after_another_model_is_loaded(qtbot: QtBot) -> None:
    line = StatusLine()
    qtbot.addWidget(line)
    line.show_model(ModelInfo("storyteller", "storyteller", threads=2, note="no GPU found"))
    assert line.device.text() == "● storyteller"
    assert line.device.toolTip().startswith("CPU, float32, 2 threads (no GPU found)")
    run = Run(RunRequest("Once"))
    run.apply([_started("storyteller")])
    line.show_run(run)
    line.stop_timer()
    assert "2 threads" in line.device.toolTip()
    line.show_loading("describer")
    assert line.device.text() == "● Loading describer…"
    line.show_model(ModelInfo("describer", "describer", device="cuda", dtype="bfloat16"))
    assert line.device.text() == "● storyteller"
    assert line.device.toolTip() == "CPU, float32"
    line.show_run(None)
    line.stop_timer()
    assert (line.device.text(), line.device.toolTip()) == ("● describer", "CUDA, bfloat16")


def test_recorded_run_without_a_loaded_model_shows_its_own_model(qtbot: QtBot) -> None:
    line = StatusLine()
    qtbot.addWidget(line)
    line.show_state("No model loaded")
    assert line.device.text() == "● No model loaded"
    run = Run(RunRequest("Once"))
    run.apply([_started("folder/tale", "cuda")])
    line.show_run(run)
    line.stop_timer()
    assert (line.device.text(), line.device.toolTip()) == ("● tale", "CUDA, float32")


def test_long_model_name_leaves_room_for_the_numbers(qtbot: QtBot) -> None:
    line = StatusLine()
    qtbot.addWidget(line)
    line.resize(1000, 28)
    name = "a name that says everything about a model, its size, its bits and its author " * 2
    run = Run(RunRequest("Once"))
    run.apply([_started(name), Prefilled(13, 0.5)])
    with qtbot.waitExposed(line):
        line.show()
    line.show_run(run)
    line.stop_timer()
    assert line.number_labels["prefill"].isVisible()
    assert line.device.width() < line.device.sizeHint().width()
    assert line.device.geometry().right() < line.number_labels["prefill"].geometry().left()
    assert line.device.toolTip().startswith("● a name that says everything")
    line.resize(3000, 28)
    assert line.device.toolTip().startswith("CPU")
