"""Faults of engines on other machines: disconnected, busy, silent or wrong ones; and cancelled runs."""

import threading

import pytest

from decodescope import core
from decodescope.core.errors import (
    EngineBusyError,
    EngineCutError,
    EngineError,
    EngineReplyError,
    EngineUnreachableError,
    ModelNotFoundError,
)
from decodescope.core.events import Finished, SequenceFinished, TokenChosen
from decodescope.core.remote.engines.sglang import GenerateResponse
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import connect
from decodescope.core.remote.remote_run import read_deltas
from tests import fake_remote_engine
from tests.core.remote_requests import GREEDY, chosen_tokens, make_request, model_of
from tests.fake_remote_engine import FakeEngine


def test_stop_closes_the_connection(machine: FakeEngine) -> None:
    machine.held.clear()
    machine.story = fake_remote_engine.STORY * 2000
    cancel, seen = threading.Event(), []
    for event in core.stream(model_of(machine), make_request(max_new_tokens=10_000), cancel):
        seen.append(event)
        if isinstance(event, TokenChosen):
            cancel.set()
            machine.held.set()
    assert machine.left.wait(10)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].reason == "stopped"
    assert [event.reason for event in seen if isinstance(event, SequenceFinished)] == ["stopped"]


def test_closing_the_stream_closes_the_connection(machine: FakeEngine) -> None:
    machine.story = fake_remote_engine.STORY * 2000
    events = core.stream(model_of(machine), make_request(max_new_tokens=10_000))
    next(event for event in events if isinstance(event, TokenChosen))
    events.close()
    assert machine.left.wait(10)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ({"dies_after": 3}, EngineCutError, "was lost during the text: the other side closed the connection"),
        ({"fails_after": 3}, EngineCutError, "the worker ran out of memory"),
        ({"garbage_after": 3}, EngineReplyError, "is not a valid response"),
        ({"pause": 1.0}, EngineCutError, "no more data"),
    ],
)
def test_server_failure_during_a_run_keeps_the_text(
    fault: dict[str, float], error: type[EngineError], words: str
) -> None:
    with fake_remote_engine.running(**fault) as machine:
        received: list[core.events.Event] = []
        model = connect(
            machine.name(), timeouts=Timeouts(first_byte=20, between_chunks=0.3 if "pause" in fault else 20)
        )
        with pytest.raises(error, match=words):
            all(received.append(event) is None for event in core.stream(model, make_request()))
        stored = "".join(event.text for event in chosen_tokens(received))
        assert stored == ("" if "pause" in fault else " there was the")


def test_busy_server_is_retried(machine: FakeEngine) -> None:
    model = model_of(machine)
    machine.refusals = [(429, {"Retry-After": "0.01"}, "busy"), (503, {}, "loading")]
    assert core.run(model, make_request()).texts == [GREEDY]
    machine.refusals = [(500, {}, '{"error": {"message": "no card"}}')] * 3
    with pytest.raises(EngineBusyError, match="500: no card"):
        core.run(model, make_request())
    assert machine.refusals == []
    machine.refusals = [(429, {"Retry-After": "60"}, "busy")]
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    patient = connect(machine.name(), timeouts=Timeouts())
    assert core.run(patient, make_request(), cancel).reason == "stopped"


def test_server_models_are_selected_by_name() -> None:
    with fake_remote_engine.running(models=("tale-7b", "tale-70b")) as machine:
        with pytest.raises(ModelNotFoundError, match="tale-7b, tale-70b"):
            connect(f"{machine.address}/v1")
        with pytest.raises(ModelNotFoundError, match="has no model “tale-8b”"):
            connect(machine.name("tale-8b"))
    with fake_remote_engine.running() as machine:
        assert connect(machine.address).name == "tale-7b"
    with pytest.raises(EngineUnreachableError, match="cannot be reached"):
        connect(machine.name())


def test_web_page_instead_of_an_engine_raises_an_error(machine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fake_remote_engine._EngineHandler, "_json", lambda self, _s, _v: self._bytes(200, b"<html>Hello</html>", {})
    )
    with pytest.raises(EngineReplyError, match="<html>Hello"):
        connect(machine.name())


def test_silent_server_raises_engine_unreachable(machine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_remote_engine._EngineHandler, "do_GET", lambda self: machine.left.wait(5))
    with pytest.raises(EngineUnreachableError, match="has not answered"):
        connect(machine.name(), timeouts=Timeouts(first_byte=0.1))
    machine.left.set()


@pytest.mark.parametrize("choice", [{"index": "first"}, {"index": {"number": 1}}])
def test_malformed_reply_error_contains_the_parse_location(choice: dict[str, object]) -> None:
    with pytest.raises(EngineReplyError) as caught:
        read_deltas({"choices": [choice]}, "the engine", GenerateResponse("the engine"))
    assert "responses.py" in caught.value.details
    assert caught.value.__cause__ is not None
