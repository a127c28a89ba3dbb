"""Queries to the worker: each is a class of its own, which no other file mentions."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.session.engine_proxy import DeterministicEngine
from decodescope.app.session.engine_router import EngineRouter
from decodescope.app.session.local_models import LocalModels
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import CacheError
from tests.packaging.test_code_blocks import ROOT, blocks_of
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS


@plain(frozen=True)
class BlockingQuery(Query):
    """Keeps the worker busy until it is released."""

    release: threading.Event = field(default_factory=threading.Event)

    def run(self, models: LocalModels, report: Report) -> None:
        self.release.wait()


@plain(frozen=True)
class EchoQuery(Query):
    """Reports its text and returns the id of its thread, or fails."""

    text: str = ""
    error: Exception | None = None

    def run(self, models: LocalModels, report: Report) -> int:
        report(self.text)
        if self.error is not None:
            raise self.error
        return threading.get_ident()

    def remote_result(self, model: str) -> str:
        return f"{self.text} {model}"


@plain(frozen=True)
class LatestQuery(EchoQuery):
    replaces_earlier = True


@plain(frozen=True)
class InterruptibleQuery(EchoQuery):
    yields_to_runs = True


@plain(frozen=True)
class MeasurementQuery(EchoQuery):
    is_reproducible = False


@pytest.fixture
def session(qtbot: QtBot) -> Iterator[Session]:
    session = Session(ScriptedEngine())
    yield session
    session.shut_down()


def answers(qtbot: QtBot, session: Session, *queries: Query) -> list[Answer]:
    """Send queries and return all answers, once the last query is answered."""
    received: list[Answer] = []
    session.answered.connect(received.append)
    for query in queries:
        session.request(query)
    qtbot.waitUntil(lambda: any(one.query is queries[-1] and one.has_ended for one in received), timeout=WAIT_MS)
    return received


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that the page on the architecture shows, in a file of its own."""
    (code,) = (code for _, code in blocks_of(ROOT / "docs" / "architecture.md") if "TokenCountQuery" in code)
    path = tmp_path / "token_count.py"
    path.write_text(code.lstrip("\n"))
    spec = importlib.util.spec_from_file_location("token_count", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "token_count", module)
    spec.loader.exec_module(module)
    return module


def test_query_in_a_new_module_is_answered_by_the_worker(qtbot: QtBot, documented: ModuleType) -> None:
    session = Session()
    query: Any = documented.TokenCountQuery("Once upon a time", load=LoadRequest("storyteller-draft"))
    (answer,) = answers(qtbot, session, query)
    session.shut_down()
    assert (answer.error, answer.has_ended) == (None, True)
    assert 0 < answer.result <= len("Once upon a time")


def test_parts_are_reported_before_the_result_from_the_worker_thread(qtbot: QtBot, session: Session) -> None:
    part, end = answers(qtbot, session, EchoQuery("a"))
    assert (part.result, part.has_ended) == ("a", False)
    assert end.has_ended
    assert end.result != threading.get_ident()


def test_exception_in_a_query_is_its_answer_and_the_next_is_answered(qtbot: QtBot, session: Session) -> None:
    failed, following = EchoQuery("a", CacheError("It is gone.", "Repeat it.")), EchoQuery("b")
    received = answers(qtbot, session, failed, following)
    errors = [answer.error for answer in received if answer.has_ended]
    assert errors[0] is not None
    assert (errors[0].cause, errors[0].remedy) == ("It is gone.", "Repeat it.")
    assert errors[1] is None


def test_newer_query_replaces_a_waiting_one_of_its_class(qtbot: QtBot, session: Session) -> None:
    blocking, other, first, last = BlockingQuery(), EchoQuery("other"), LatestQuery("first"), LatestQuery("last")
    threading.Timer(0.2, blocking.release.set).start()
    received = answers(qtbot, session, blocking, other, first, last)
    texts = [answer.result for answer in received if not answer.has_ended]
    assert texts == ["other", "last"]
    (skipped,) = (answer for answer in received if answer.query is first)
    assert (skipped.result, skipped.error, skipped.has_ended) == (None, None, True)


def test_run_cancels_waiting_queries_that_yield_to_runs(qtbot: QtBot, session: Session) -> None:
    blocking, kept, cancelled = BlockingQuery(), EchoQuery("kept"), InterruptibleQuery("cancelled")
    for query in (blocking, kept, cancelled):
        session.request(query)
    with qtbot.waitSignal(session.finished, timeout=WAIT_MS):
        session.start(RunRequest("Once", load=LoadRequest("storyteller")))
        blocking.release.set()
    assert cancelled.cancel.is_set()
    assert not kept.cancel.is_set()


def test_query_for_a_remote_model_is_answered_without_the_engine() -> None:
    query = EchoQuery("asked of", load=LoadRequest("http://127.0.0.1:9/v1#toy"))
    assert EngineRouter().answer(query, print) == "asked of toy"


def test_measurements_are_left_out_of_reproducible_pictures() -> None:
    engine = DeterministicEngine(ScriptedEngine())
    assert engine.answer(MeasurementQuery("a"), print) is None
    assert engine.answer(EchoQuery("a"), print) == threading.get_ident()
