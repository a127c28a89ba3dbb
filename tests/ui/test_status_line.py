"""The status line: figures that are known, and nothing of those that are not."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from decodescope.app.panels.status_line import StatusLine
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.events import Prefilled
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
