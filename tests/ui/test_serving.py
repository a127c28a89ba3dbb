"""Tools › Serve this model: off until it is started, each request is a run of the window, one at a time."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.features.serving.panel import ServerDialog
from decodescope.app.features.serving.session import PromptEncoding, ServedRuns
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state.worker_messages import RunRequest, is_token_ids
from decodescope.app.widgets.dialog import FittedScrollArea
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import DecodescopeError, PromptTooLongError
from decodescope.core.events import Event, TokenChosen
from decodescope.core.server import ApiError, ServedRequest, http_server
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.windows import open_window

WAIT_MS = 20_000
needs_server = pytest.mark.skipif(
    bool(http_server.missing_packages()), reason="needs the packages of the extra “server”"
)


class EncodingEngine(ScriptedEngine):
    """Encodes every prompt as three ids, without a model; a prompt “long” is too long."""

    def answer(self, query: Query, report: Report) -> object:
        if isinstance(query, PromptEncoding):
            if query.prompt == "long":
                raise PromptTooLongError(100, 64)
            return (1, 2, 3), "Hello"
        return super().answer(query, report)

    def prepare(self, request: RunRequest) -> RunRequest:
        return request if is_token_ids(request.prompt) else super().prepare(request)


class InThread:
    """Collects what a function of a server's thread returns or raises."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(work,))
        self.thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.result = work()
        except BaseException as error:
            self.error = error

    @property
    def has_ended(self) -> bool:
        return not self.thread.is_alive()


@pytest.fixture
def engine() -> EncodingEngine:
    return EncodingEngine()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path, engine: EncodingEngine) -> MainWindow:
    opened = open_window(qtbot, tmp_path, engine)
    qtbot.waitUntil(lambda: opened.session.model is not None, timeout=WAIT_MS)
    return opened


@pytest.fixture
def runs(window: MainWindow) -> ServedRuns:
    serving = window.parts.serving
    serving._load = serving._loading.request()
    return ServedRuns(window.session, serving._make_request, window)


def serve(runs: ServedRuns, prompt: object = "Hello", cancel: threading.Event | None = None) -> InThread:
    cancel = cancel or threading.Event()
    request = ServedRequest(prompt, {"max_new_tokens": 40}, strategy="greedy", seed=5)
    return InThread(lambda: list(runs.run(request, cancel)))


def written(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TokenChosen))


@needs_server
def test_nothing_is_served_until_start_is_pressed(qtbot: QtBot, window: MainWindow) -> None:
    serving = window.parts.serving
    dialog = serving.open()
    assert isinstance(dialog, ServerDialog)
    assert serving.server is None
    assert not dialog.key.isVisible()
    dialog.port.setValue(0)
    dialog.toggle.click()
    assert serving.server is not None
    assert dialog.address.field.text() == serving.server.address
    assert dialog.address.field.text().startswith("http://127.0.0.1:")
    assert dialog.key.field.text() == serving.server.key
    assert serving.server.key in dialog.example.toPlainText()
    assert dialog.key.isVisible()
    dialog.toggle.click()
    assert serving.server is None
    assert not dialog.key.isVisible()


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_example_is_as_high_as_its_lines(qtbot: QtBot, window: MainWindow, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    dialog = window.parts.serving.open()
    assert isinstance(dialog, ServerDialog)
    for model in ("storyteller", "m" * 200):
        dialog.show_on(model, 8017, "http://127.0.0.1:8017/v1", "sk-1zLGQq1")
        qtbot.waitUntil(lambda: dialog.example.verticalScrollBar().maximum() == 0)
        document = dialog.example.document()
        layout = document.documentLayout()
        last = layout.blockBoundingRect(document.lastBlock()).height()
        lines = last + layout.blockBoundingRect(document.firstBlock()).height() * (document.blockCount() - 1)
        assert dialog.example.viewport().height() - lines < dialog.example.fontMetrics().lineSpacing() / 2
        assert dialog.findChild(FittedScrollArea).horizontalScrollBar().maximum() == 0


@needs_server
def test_a_chat_of_a_client_is_a_run_of_the_window_and_not_of_its_conversation(
    qtbot: QtBot, window: MainWindow, engine: EncodingEngine
) -> None:
    serving = window.parts.serving
    serving.start(port=0)
    assert serving.server is not None
    body = {"model": serving.server.model.name, "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
    request = urllib.request.Request(
        f"{serving.server.address}/chat/completions", json.dumps(body).encode(),
        {"Authorization": f"Bearer {serving.server.key}"},
    )  # fmt: skip
    client = InThread(lambda: json.load(urllib.request.urlopen(request, timeout=20)))
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    assert client.error is None
    assert client.result["choices"][0]["message"]["content"] == "".join(STORY)
    assert engine.runs[-1].prompt == (1, 2, 3)
    assert window.session.run is not None
    assert window.session.run.text == "".join(STORY)
    assert window.parts.chat.conversation.turns == []
    serving.stop()


def test_a_request_waits_while_a_run_of_the_user_is_in_progress(
    qtbot: QtBot, window: MainWindow, runs: ServedRuns, engine: EncodingEngine
) -> None:
    engine.hold = threading.Event()
    window.parts.runs.run()
    qtbot.waitUntil(lambda: len(engine.runs) == 1, timeout=WAIT_MS)
    own = window.session.latest
    client = serve(runs)
    qtbot.waitUntil(lambda: len(runs._waiting) == 1, timeout=WAIT_MS)
    assert len(engine.runs) == 1
    engine.hold.set()
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    assert client.error is None
    assert written(client.result) == "".join(STORY)
    assert own is not None
    assert own.outcome is not None
    assert own.outcome.kind == "completed"


def test_requests_run_one_after_another(qtbot: QtBot, runs: ServedRuns, engine: EncodingEngine) -> None:
    clients = [serve(runs) for _ in range(3)]
    qtbot.waitUntil(lambda: all(client.has_ended for client in clients), timeout=WAIT_MS)
    assert [written(client.result) for client in clients] == ["".join(STORY)] * 3
    assert (len(engine.runs), runs.count) == (3, 3)


def test_a_client_that_goes_away_stops_the_run(
    qtbot: QtBot, window: MainWindow, runs: ServedRuns, engine: EncodingEngine
) -> None:
    engine.hold, cancel = threading.Event(), threading.Event()
    client = serve(runs, cancel=cancel)
    qtbot.waitUntil(lambda: len(engine.runs) == 1, timeout=WAIT_MS)
    cancel.set()
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=WAIT_MS)
    assert window.session.run is not None
    assert window.session.run.outcome is not None
    assert window.session.run.outcome.kind == "stopped"


def test_a_prompt_that_is_too_long_is_the_clients_error(qtbot: QtBot, runs: ServedRuns) -> None:
    client = serve(runs, "long")
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    assert isinstance(client.error, ApiError)
    assert client.error.code == "context_length_exceeded"


def test_an_error_of_the_run_reaches_the_client(qtbot: QtBot, runs: ServedRuns, engine: EncodingEngine) -> None:
    engine.fail_at, engine.error = 2, DecodescopeError("It failed.", "Try again.")
    client = serve(runs)
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    assert isinstance(client.error, DecodescopeError)
    assert client.error.cause == "It failed."


def post(window: MainWindow, body: object) -> InThread:
    """Call the chat endpoint of the window's server as a client; the result is the status and the body."""
    server = window.parts.serving.server
    assert server is not None
    request = urllib.request.Request(
        f"{server.address}/chat/completions", json.dumps(body).encode(), {"Authorization": f"Bearer {server.key}"}
    )

    def send() -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return InThread(send)


def calls(dialog: ServerDialog) -> list[str]:
    return [line for line in dialog.calls.toPlainText().split("\n") if line]


@needs_server
@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"presence_penalty": 3}, 400, "Presence penalty (presence_penalty) is 3.0"),
        ({"fails": True}, 400, "It failed."),
    ],
)
def test_error_of_a_client_is_a_line_in_the_dialog_and_not_a_banner(
    qtbot: QtBot, window: MainWindow, engine: EncodingEngine, fields: dict[str, object], status: int, sentence: str
) -> None:
    serving, centre = window.parts.serving, window.parts.centre
    dialog = serving.open()
    serving.start(port=0)
    assert serving.server is not None
    if fields.pop("fails", False):
        engine.fail_at, engine.error = 2, DecodescopeError("It failed.", "Try again.")
    hello = {"model": serving.server.model.name, "messages": [{"role": "user", "content": "Hello"}]}
    client = post(window, {**hello, **fields})
    qtbot.waitUntil(lambda: client.has_ended and len(calls(dialog)) == 1, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=WAIT_MS)
    assert client.result[0] == status
    (line,) = calls(dialog)
    assert f"chat: error {status}. " in line
    assert sentence in line
    assert dialog.calls.isVisible()
    assert centre.error_banner.isHidden()
    assert window.parts.messages.error is None
    engine.fail_at = None
    dialog.close()
    client = post(window, hello)
    qtbot.waitUntil(lambda: client.has_ended and len(serving._calls) == 2, timeout=WAIT_MS)
    assert calls(serving.open())[1].endswith("tokens"), "the list outlives the dialog"
    serving.stop()


@needs_server
def test_status_counts_answered_and_refused_calls_and_says_why_the_last_one_was_refused(
    qtbot: QtBot, window: MainWindow, engine: EncodingEngine
) -> None:
    serving = window.parts.serving
    dialog = serving.open()
    serving.start(port=0)
    assert serving.server is not None
    assert dialog.status.text() == "On. 0 requests answered, 0 refused."
    hello = {"model": serving.server.model.name, "messages": [{"role": "user", "content": "Hello"}]}
    for body, said in (
        ({**hello, "tools": [{}]}, "On. 0 requests answered, 1 refused. Last refusal: tools is not supported: "),
        (hello, "On. 1 request answered, 1 refused. Last refusal: tools is not supported: "),
        ({**hello, "min_keep": 5}, "On. 1 request answered, 2 refused. Last refusal: min_keep is not supported: "),
    ):
        client = post(window, body)
        qtbot.waitUntil(lambda client=client: client.has_ended, timeout=WAIT_MS)
        qtbot.waitUntil(lambda said=said: dialog.status.text().startswith(said), timeout=WAIT_MS)
    dialog.close()
    assert serving.open().status.text().startswith("On. 1 request answered, 2 refused."), "kept when it closes"
    serving.stop()


@needs_server
def test_status_says_that_an_answer_is_being_written(qtbot: QtBot, window: MainWindow, engine: EncodingEngine) -> None:
    serving = window.parts.serving
    dialog = serving.open()
    serving.start(port=0)
    assert serving.server is not None
    engine.hold = threading.Event()
    client = post(window, {"model": serving.server.model.name, "messages": [{"role": "user", "content": "Hello"}]})
    busy = "On. An answer is being written. 0 requests answered, 0 refused."
    qtbot.waitUntil(lambda: dialog.status.text() == busy, timeout=WAIT_MS)
    engine.hold.set()
    qtbot.waitUntil(lambda: client.has_ended, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: dialog.status.text() == "On. 1 request answered, 0 refused.", timeout=WAIT_MS)
    serving.stop()


def test_error_of_the_users_own_run_beside_the_server_is_a_banner(
    qtbot: QtBot, window: MainWindow, runs: ServedRuns, engine: EncodingEngine
) -> None:
    window.parts.serving._runs = runs
    client = serve(runs)
    qtbot.waitUntil(lambda: client.has_ended and not window.session.busy, timeout=WAIT_MS)
    engine.fail_at, engine.error = 2, DecodescopeError("It failed.", "Try again.")
    window.parts.runs.run()
    qtbot.waitUntil(lambda: not window.parts.centre.error_banner.isHidden(), timeout=WAIT_MS)


def test_closing_ends_the_requests(qtbot: QtBot, runs: ServedRuns, engine: EncodingEngine) -> None:
    engine.hold = threading.Event()
    clients = [serve(runs), serve(runs)]
    qtbot.waitUntil(lambda: len(engine.runs) == 1 and len(runs._waiting) == 1, timeout=WAIT_MS)
    runs.close()
    qtbot.waitUntil(lambda: all(client.has_ended for client in clients), timeout=WAIT_MS)
    assert all(isinstance(client.error, DecodescopeError) for client in clients)


@needs_server
def test_selecting_another_model_stops_the_server(qtbot: QtBot, window: MainWindow) -> None:
    serving = window.parts.serving
    serving.start(port=0)
    with qtbot.waitSignal(serving.changed, timeout=WAIT_MS, check_params_cb=lambda is_on: not is_on):
        window.parts.chosen.model.choose("storyteller-draft")
    assert serving.server is None


def test_missing_packages_are_named_in_the_dialog(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "missing_packages", lambda: ["starlette", "uvicorn"])
    dialog = window.parts.serving.open()
    dialog.toggle.click()
    assert window.parts.serving.server is None
    assert "pip install starlette uvicorn" in dialog.status.text()
