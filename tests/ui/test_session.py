"""The session and its worker: one outcome each run, no token lost, nothing left behind."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.session.garbage_collection import BUSY_INTERVALS, GarbageCollector
from decodescope.app.session.mailbox import MAX_INTERVAL, MIN_INTERVAL, DeliveryRate, Mailbox
from decodescope.app.session.session import Session
from decodescope.app.session.side_runs import MeasurementProgress
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.app.views.shared.empty_page import waiting_title
from decodescope.core.errors import CorruptWeightsError, NumericError
from decodescope.core.events import Finished, TokenChosen
from tests.ui.fake_engine import STORY, ScriptedEngine, chosen

WAIT_MS = 60_000


@pytest.fixture
def session(qtbot: QtBot, engine: ScriptedEngine) -> Iterator[Session]:
    session = Session(engine)
    yield session
    session.shut_down()
    session.deleteLater()


def ended(qtbot: QtBot, session: Session, request: RunRequest) -> Outcome:
    """The outcome of a run from its start to its end."""
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS) as signal:
        session.start(request)
    return signal.args[0]


REQUEST = RunRequest("Once upon", load=LoadRequest("storyteller"))


def test_run_completes_with_all_events(qtbot: QtBot, session: Session) -> None:
    outcome = ended(qtbot, session, REQUEST)
    run = session.run
    assert run is not None
    assert outcome == run.outcome == Outcome("completed", f"EOS after {len(STORY)} tokens")
    assert run.text == "".join(STORY)
    assert isinstance(run.events[-1], Finished)


def test_event_batches_are_complete_and_in_order(qtbot: QtBot, session: Session) -> None:
    received: list[Any] = []
    session.eventsArrived.connect(lambda run, events: received.extend(events))
    ended(qtbot, session, REQUEST)
    assert session.run is not None
    assert received == session.run.events


def test_first_tokens_are_delivered_before_run_ends(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.hold = threading.Event()
    session.start(REQUEST)
    qtbot.waitUntil(lambda: len(session.run.tokens) == 10, timeout=WAIT_MS)
    assert session.state == "running"
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        engine.hold.set()


def test_first_token_is_delivered_without_batching(
    qtbot: QtBot, session: Session, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However rarely batches go out: here none would before the run's end."""
    monkeypatch.setattr("decodescope.app.session.mailbox.MIN_INTERVAL", 3600.0)
    monkeypatch.setattr(session._delivery._rate, "interval", 3600.0)
    engine.hold = threading.Event()
    session.start(REQUEST)
    qtbot.waitUntil(lambda: len(session.run.tokens) > 0, timeout=WAIT_MS)
    assert session.state == "running"
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        engine.hold.set()
    assert session.run.text == "".join(STORY)


def test_stop_keeps_generated_text(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.hold = threading.Event()
    session.start(REQUEST)
    qtbot.waitUntil(lambda: len(session.run.tokens) == 10, timeout=WAIT_MS)
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS) as signal:
        session.stop()
        assert session.state == "stopping"
    assert signal.args[0] == Outcome("stopped", "stopped after 10 tokens")
    assert session.run.text == "".join(STORY[:10])
    assert session.state == "idle"
    assert engine.closed == 1


def test_failure_has_cause_and_keeps_text(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.fail_at, engine.error = 5, NumericError("NaN at step 5.", "Load it in float32.")
    with qtbot.waitSignal(session.failed, timeout=WAIT_MS) as failed:
        outcome = ended(qtbot, session, REQUEST)
    assert outcome.kind == "failed"
    assert outcome.error == failed.args[0]
    assert (outcome.error.cause, outcome.error.remedy) == ("NaN at step 5.", "Load it in float32.")
    assert "Traceback" in outcome.error.details
    assert session.run.text == "".join(STORY[:5])
    assert ended(qtbot, session, REQUEST).kind == "failed"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RuntimeError("odd")])
def test_any_exception_gives_failed_outcome(
    qtbot: QtBot, session: Session, engine: ScriptedEngine, error: BaseException
) -> None:
    engine.fail_at, engine.error = 0, error
    assert ended(qtbot, session, REQUEST).kind == "failed"


def test_stream_without_finished_event_is_failed(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.stream = lambda request, cancel: iter([chosen(0, " a")])  # type: ignore[method-assign]
    outcome = ended(qtbot, session, REQUEST)
    assert (outcome.kind, session.run.text) == ("failed", " a")


def test_model_load_error_gives_failed_outcome(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.load_error = CorruptWeightsError("model.safetensors is cut short.", "Copy it again.")
    received: list[Any] = []
    session.failed.connect(received.append)
    outcome = ended(qtbot, session, REQUEST)
    assert outcome.error.kind == "CorruptWeightsError"
    assert len(received) == 1
    with qtbot.waitSignal(session.failed, timeout=WAIT_MS):
        session.load_model("storyteller")
    assert session.model is None
    qtbot.waitUntil(lambda: session.state == "idle")


def test_model_loading_is_emitted_once(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    loading: list[str] = []
    states: list[str] = []
    session.modelLoading.connect(loading.append)
    session.modelReady.connect(lambda _info: states.append(session.state))
    with qtbot.waitSignal(session.modelReady, timeout=WAIT_MS) as ready:
        session.load_model("storyteller")
        assert session.state == "loading"
    assert ready.args[0].name == "storyteller"
    ended(qtbot, session, REQUEST)
    assert loading == ["storyteller"]
    assert session.state == "idle"
    assert states == ["idle"], "who hears that the model is ready finds the state that goes with it"


def test_emit_current_sends_updated_model_info(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    with qtbot.waitSignal(session.modelReady, timeout=WAIT_MS) as ready:
        session.load_model("storyteller")
    engine.info = ready.args[0]._replace(note="这台 torch 用不了显卡")
    with qtbot.waitSignals([session.modelReady, session.modelReady], timeout=WAIT_MS):
        session.emit_current()
    assert session.model == engine.info
    assert session.state == "idle"


def test_waiting_title_distinguishes_loading_from_reading_prompt(qtbot: QtBot, session: Session) -> None:
    """The placeholder of the text must not say that the prompt is read while the model is loaded."""
    reported = [waiting_title(None)]
    session.runStarted.connect(lambda run: reported.append(waiting_title(run)))
    session.modelReady.connect(lambda _info: reported.append(waiting_title(session.run)))
    ended(qtbot, session, REQUEST)
    assert reported == ["", "Loading storyteller…", "Reading the prompt…"]
    ended(qtbot, session, REQUEST)
    assert reported[3:] == ["Reading the prompt…"]
    assert waiting_title(session.run) == ""


def test_run_after_load_of_same_model_completes(qtbot: QtBot, session: Session) -> None:
    session.load_model(LoadRequest("storyteller"))
    assert ended(qtbot, session, REQUEST).kind == "completed"
    qtbot.waitUntil(lambda: session.state == "idle", timeout=WAIT_MS)


def test_changed_permissions_reload_model(qtbot: QtBot, session: Session) -> None:
    loading: list[str] = []
    session.modelLoading.connect(loading.append)
    ended(qtbot, session, REQUEST)
    ended(qtbot, session, RunRequest("", load=LoadRequest("storyteller", allow_pickle=True)))
    assert len(loading) == 2


def test_new_run_replaces_active_run(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    engine.hold = threading.Event()
    kinds: list[str] = []
    session.finished.connect(lambda outcome: kinds.append(outcome.kind))
    session.start(REQUEST)
    qtbot.waitUntil(lambda: len(session.run.tokens) == 10, timeout=WAIT_MS)
    session.start(RunRequest("Second", load=LoadRequest("storyteller")))
    session.start(RunRequest("Third", load=LoadRequest("storyteller")))
    engine.hold.set()
    qtbot.waitUntil(lambda: len(kinds) == 2, timeout=WAIT_MS)
    assert kinds == ["stopped", "completed"]
    assert session.run.request.prompt == "Third"
    assert [run.prompt for run in engine.runs] == ["Once upon", "Third"]


def test_cursor_selection_and_sequence_changes_emit_signals(qtbot: QtBot, session: Session) -> None:
    ended(qtbot, session, RunRequest("x", config={"num_return_sequences": 2}, load=LoadRequest("storyteller")))
    with qtbot.waitSignal(session.cursorMoved):
        session.move_cursor(3)
    with qtbot.assertNotEmitted(session.cursorMoved):
        session.move_cursor(3)
    with qtbot.waitSignal(session.selectionChanged):
        session.select_token(2)
    with qtbot.assertNotEmitted(session.selectionChanged):
        session.select_token(2)
    with qtbot.waitSignals([session.selectionChanged, session.cursorMoved]):
        session.show_sequence(1)
    assert (session.run.shown_index, session.run.selected) == (1, None)


def test_shutting_down_ends_the_run_with_an_outcome(qtbot: QtBot) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    session = Session(engine)
    outcomes: list[Outcome] = []
    session.finished.connect(outcomes.append)
    session.start(REQUEST)
    qtbot.waitUntil(lambda: len(session.run.tokens) == 10, timeout=WAIT_MS)
    session.shut_down()
    assert [outcome.kind for outcome in outcomes] == ["stopped"]
    assert engine.closed == 1
    session.start(REQUEST)
    session.load_model("storyteller")
    assert not session.busy
    session.deleteLater()


@pytest.mark.slow
def test_two_hundred_random_starts_and_stops_have_one_outcome_each(
    qtbot: QtBot, session: Session, engine: ScriptedEngine
) -> None:
    """Every start has one outcome, whenever it is stopped; nothing keeps running."""
    engine.tokens = [" x"] * 400
    engine.delay = 0.0002
    dice = random.Random(5)
    outcomes: list[Outcome] = []
    session.finished.connect(outcomes.append)
    threads = threading.active_count()
    for number in range(200):
        session.start(REQUEST)
        for _ in range(dice.randrange(4)):
            qtbot.waitUntil(lambda: True)
        if dice.random() < 0.5:
            wanted = dice.randrange(12)
            qtbot.waitUntil(lambda wanted=wanted: len(session.run.tokens) >= wanted, timeout=WAIT_MS)
        session.stop()
        qtbot.waitUntil(lambda number=number: len(outcomes) == number + 1, timeout=WAIT_MS)
    assert {outcome.kind for outcome in outcomes} <= {"stopped", "completed"}
    assert engine.closed == len(engine.runs)
    assert threading.active_count() <= threads + 1
    assert not session.busy


def test_mailbox_put_reports_only_first_event() -> None:
    box = Mailbox()
    events = [chosen(step, " a") for step in range(3)]
    assert [box.put(event) for event in events] == [True, False, False]
    assert box.take() == events
    assert box.put(events[0])


def test_mailbox_put_reports_urgent_event() -> None:
    box = Mailbox()
    assert box.put(chosen(0, " a"))
    assert not box.is_urgent
    assert box.put(chosen(1, " b"), is_urgent=True)
    assert box.is_urgent
    assert len(box.take()) == 2
    assert not box.is_urgent


def test_mailbox_delivers_all_events_between_threads() -> None:
    """The reader takes events only when `put` reports True; otherwise an event would be left behind."""
    box, taken, reported = Mailbox(), [], threading.Semaphore(0)
    count = 20_000
    last = chosen(count, " end")

    def write() -> None:
        for step in range(count):
            if box.put(chosen(0, " a") if step % 1000 else last):
                reported.release()

    writer = threading.Thread(target=write)
    writer.start()
    while len(taken) < count and reported.acquire(timeout=5):
        taken += box.take()
    writer.join()
    assert len(taken) == count


def test_garbage_collector_disables_automatic_collection(qtbot: QtBot) -> None:
    before = gc.isenabled()  # a window of another test may still be waiting for its end
    collectors = [GarbageCollector(), GarbageCollector()]
    for collector in collectors:
        collector.start()
    assert not gc.isenabled()
    collectors[0].stop()
    assert not gc.isenabled()
    collectors[1].stop()
    collectors[1].stop()
    assert gc.isenabled() == before


def test_garbage_collector_collects_when_threshold_is_exceeded(qtbot: QtBot) -> None:
    collector = GarbageCollector()
    collector.start()
    try:
        gc.collect()
        stored = [[] for _ in range(gc.get_threshold()[0] + 100)]
        assert gc.get_count()[0] > gc.get_threshold()[0]
        collector.collect()
        assert gc.get_count()[0] <= gc.get_threshold()[0]
        del stored
    finally:
        collector.stop()


def test_garbage_collection_is_postponed_during_short_run(qtbot: QtBot) -> None:
    collector = GarbageCollector()
    collector.start()
    stored = []
    try:
        gc.collect()
        for due in ([False] * BUSY_INTERVALS, [True]):
            collector.set_busy(not stored)
            for is_collected in due:
                stored += [[] for _ in range(gc.get_threshold()[0] + 100)]
                collector.collect()
                assert (gc.get_count()[0] <= gc.get_threshold()[0]) == is_collected
    finally:
        collector.stop()


def test_events_cross_threads_without_conversion(qtbot: QtBot, session: Session) -> None:
    """Events cross the threads as they are, not as copies that Qt made of them."""
    ended(qtbot, session, REQUEST)
    assert all(type(event) is not dict for event in session.run.events)
    assert isinstance(session.run.tokens[0], TokenChosen)


def test_delivery_interval_increases_with_slow_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now": 100.0, "computed": 0.0}
    monkeypatch.setattr("decodescope.app.session.mailbox.time.monotonic", lambda: clock["now"])
    monkeypatch.setattr("decodescope.app.session.mailbox.time.thread_time", lambda: clock["computed"])
    pace = DeliveryRate()
    assert pace.seconds_until_due() <= 0
    for drawing, interval in ((0.001, MIN_INTERVAL), (0.5, MAX_INTERVAL)):
        for _ in range(20):
            pace.record_batch()
            assert pace.seconds_until_due() == pytest.approx(pace.interval)
            clock["now"] += pace.interval
            clock["computed"] += drawing
        assert pace.interval == pytest.approx(interval, rel=0.01)
    for _ in range(20):
        pace.begin()
        assert pace.seconds_until_due() == pytest.approx(MIN_INTERVAL), "a short prompt is read by then"
        for drawing in (0.001, 0.5):  # the first token of a run, and the page after it
            pace.record_batch()
            clock["now"] += pace.interval
            clock["computed"] += drawing
        pace.record_batch()
    assert pace.interval == pytest.approx(MAX_INTERVAL, rel=0.01), "a single token does not say what a page takes"


def test_earlier_run_can_be_shown_only_when_idle(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    ended(qtbot, session, REQUEST)
    first = session.run
    assert first is not None
    ended(qtbot, session, REQUEST)
    assert session.run is not None
    assert session.run.id != first.id
    session.finished.connect(lambda _: pytest.fail("a run that is only shown does not end again"))
    with qtbot.waitSignal(session.runShown) as signal:
        assert session.show(first)
    assert signal.args == [first]
    assert session.run is first
    session.finished.disconnect()
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        session.start(REQUEST)
        assert not session.show(first)
        assert session.run is not first


def test_measurements_do_not_change_shown_run(qtbot: QtBot, session: Session) -> None:
    ended(qtbot, session, REQUEST)
    shown, received = session.run, []
    session.measured.connect(received.append)
    session.eventsArrived.connect(lambda run, events: pytest.fail("a measurement was shown"))
    others = [RunRequest(text, memory_fallback=False, load=LoadRequest("storyteller")) for text in ("a", "b")]
    with qtbot.waitSignal(session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        session.measure(others)
        assert session.busy
    assert session.run is shown
    assert [run.request for run in received] == others
    assert all(run.outcome == Outcome("completed", f"EOS after {len(STORY)} tokens") for run in received)
    assert not session.busy


def test_measurements_report_progress(qtbot: QtBot, session: Session) -> None:
    received: list[MeasurementProgress] = []
    session.measuringProgressed.connect(received.append)
    with qtbot.waitSignal(session.measuringChanged, timeout=WAIT_MS, check_params_cb=lambda on: not on):
        session.measure([RunRequest(text, load=LoadRequest("storyteller")) for text in "abc"])
    assert [(progress.done, progress.total) for progress in received] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert received[0].seconds_left is None
    assert all(progress.seconds_left is not None and progress.seconds_left > 0 for progress in received[1:3])
    assert received[3].seconds_left == 0


def test_measurements_reload_shown_model_afterwards(qtbot: QtBot, session: Session, engine: ScriptedEngine) -> None:
    ended(qtbot, session, REQUEST)
    reported: list[str] = []
    session.modelLoading.connect(reported.append)
    session.modelReady.connect(lambda info: reported.append(f"{info.name} is ready"))
    others = [RunRequest("a", load=LoadRequest(name)) for name in ("one", "two", "two")]
    with qtbot.waitSignal(session.modelReady, timeout=WAIT_MS):
        session.measure(others)
    assert [load.model for load in engine.loads[-4:]] == ["one", "two", "two", "storyteller"]
    assert reported == ["storyteller", "storyteller is ready"]
    assert session.model is not None
    assert session.model.name == "storyteller"


def test_run_during_measurements_emits_model_ready(qtbot: QtBot, session: Session) -> None:
    ended(qtbot, session, REQUEST)
    session.measure([RunRequest("a", load=LoadRequest("other")) for _ in range(3)])
    with qtbot.waitSignal(session.modelReady, timeout=WAIT_MS) as ready:
        session.start(RunRequest("b", load=LoadRequest("other")))
    assert ready.args[0].name == "other"


def test_run_replaces_measurements(qtbot: QtBot, session: Session) -> None:
    session.measure([RunRequest(str(number), load=LoadRequest("storyteller")) for number in range(50)])
    assert ended(qtbot, session, REQUEST).kind == "completed"
    assert session.run is not None
    assert session.run.request == REQUEST
    assert session.state == "idle"
