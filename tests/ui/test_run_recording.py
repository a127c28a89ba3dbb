"""The recording of a run is closed after the run ends, even if either of them fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.session import worker
from decodescope.app.session.mailbox import Recording
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.core.errors import NumericError
from decodescope.core.trace.recorder import Recorder
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run

REQUEST = RunRequest("Once upon", load=LoadRequest("storyteller"))


@pytest.fixture
def session(qtbot: QtBot, engine: ScriptedEngine, tmp_path: Path) -> Iterator[Session]:
    """One whose runs are recorded in `run` of the test's folder."""
    session = Session(engine)
    session.set_recording(lambda _run: tmp_path / "run")
    yield session
    session.shut_down()
    session.deleteLater()


def recorded(qtbot: QtBot, session: Session) -> Recording:
    """Record a run from its start on and return it after its end."""
    ended: list[Outcome] = []
    session.finished.connect(ended.append)
    with qtbot.waitSignal(session.recorded, timeout=WAIT_MS) as signal:
        session.start(REQUEST)
    assert len(ended) == 1
    found: Recording = signal.args[0]
    return found


def test_recording_is_complete_after_run(qtbot: QtBot, session: Session, tmp_path: Path) -> None:
    assert recorded(qtbot, session) == Recording(tmp_path / "run")
    trace = core.trace.read(tmp_path / "run")
    assert session.run is not None
    assert trace.events == session.run.events
    assert trace.is_whole


def test_run_ends_before_recording_is_closed(
    qtbot: QtBot, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, may_close = Recorder.close, threading.Event()

    def slow(self: Recorder, failure: core.trace.Failure | None = None) -> None:
        may_close.wait(WAIT_MS / 1000)
        close(self, failure)

    monkeypatch.setattr(Recorder, "close", slow)
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        session.start(REQUEST)
    with qtbot.waitSignal(session.recorded, timeout=WAIT_MS):
        may_close.set()


def test_worker_wait_for_window_times_out(qtbot: QtBot, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "END_DISPLAY_SECONDS", 0.01)
    come: list[Recording] = []
    session.recorded.connect(come.append)
    session.finished.connect(lambda _outcome: qtbot.waitUntil(lambda: len(come) == 1, timeout=WAIT_MS))
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        session.start(REQUEST)
    assert len(come) == 1


def test_recording_contains_failure_of_run(
    qtbot: QtBot, session: Session, engine: ScriptedEngine, tmp_path: Path
) -> None:
    engine.fail_at, engine.error = 5, NumericError("NaN at step 5.", "Load it in float32.")
    assert recorded(qtbot, session).error is None
    trace = core.trace.read(tmp_path / "run")
    assert trace.failure is not None
    assert (trace.failure.kind, trace.failure.cause) == ("NumericError", "NaN at step 5.")


@pytest.mark.parametrize("place", ["none/run", "."])
def test_run_continues_when_recording_cannot_be_written(
    qtbot: QtBot, session: Session, tmp_path: Path, place: str
) -> None:
    session.set_recording(lambda _run: tmp_path / place)
    found = recorded(qtbot, session)
    assert found.path == tmp_path / place
    assert found.error is not None
    assert session.run is not None
    assert session.run.outcome == Outcome("completed", f"EOS after {len(STORY)} tokens")


def test_run_is_saved_when_window_closes_at_its_end(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    shown = window.session.run
    assert shown is not None
    window.close()
    again = open_window(qtbot, config_dir)
    assert again.history.open_run(shown.id).events == shown.events
