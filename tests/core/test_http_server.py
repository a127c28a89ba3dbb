"""The HTTP server with a scripted run: keys, hosts, the queue, streams, and clients that go away."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, Finished, Metrics, PromptToken, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.request import Request
from decodescope.core.server import HttpServer, ServedModel, ServerError, http_server, new_key
from decodescope.core.server.serve_command import make_parser

WAIT_SECONDS = 20.0


class ScriptedRunner:
    """Writes “Hi you”. A prompt “hold” waits for `release` after the first token; “fail” is refused."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.release, self.has_begun, self.has_ended = threading.Event(), threading.Event(), threading.Event()
        self.running = self.most_running = 0
        self.cancelled = False

    def __call__(self, request: Request, cancel: threading.Event) -> Iterator[Event]:
        self.requests.append(request)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if request.prompt == "fail":
                raise ParameterError("It is wrong.", "Change it.", "sequence_bias")
            if request.prompt == "crash":
                raise ValueError("a secret")
            yield RunStarted("greedy", "tiny", "cpu", "float32", "dynamic", 0, (PromptToken(1, "Once"),), ())
            yield _token(0, "Hi")
            self.has_begun.set()
            while request.prompt == "hold" and not cancel.is_set() and not self.release.wait(0.01):
                pass
            self.cancelled = cancel.is_set()
            if not self.cancelled:
                yield _token(1, " you")
            yield SequenceFinished(0, "stopped" if self.cancelled else "eos")
            yield Finished("stopped" if self.cancelled else "completed", ((),), ("",), Metrics())
        finally:
            self.running -= 1
            self.has_ended.set()


def _token(step: int, piece: str) -> TokenChosen:
    return TokenChosen(step, 0, step, piece, piece, 0.5, 0.5, -0.5, -0.5, 1, 1.0, 0.1)


@pytest.fixture
def runner() -> ScriptedRunner:
    return ScriptedRunner()


@pytest.fixture
def server(runner: ScriptedRunner) -> Iterator[HttpServer]:
    made = HttpServer(ServedModel("tiny", 64), runner, key=new_key())
    made.start()
    yield made
    runner.release.set()
    made.stop()


def call(server: HttpServer, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """Return the status and the body of an answer."""
    data = None if body is None else json.dumps(body).encode()
    all_headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"{server.address}{path}", data, all_headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def complete(server: HttpServer, prompt: str = "Once", **fields: object) -> tuple[int, Any]:
    status, body = call(server, "/completions", {"model": "tiny", "prompt": prompt, "temperature": 0, **fields})
    return status, body if fields.get("stream") else json.loads(body)


def test_models_are_listed(server):
    status, body = call(server, "/models")
    assert status == 200
    assert [model["id"] for model in json.loads(body)["data"]] == ["tiny"]
    assert json.loads(call(server, "/models/tiny")[1])["id"] == "tiny"
    assert call(server, "/models/other")[0] == 404


def test_a_completion_is_answered(server):
    status, body = complete(server)
    assert (status, body["choices"][0]["text"]) == (200, "Hi you")


def test_a_stream_is_server_sent_events_that_end_with_done(server):
    status, body = complete(server, stream=True)
    lines = [line.removeprefix("data: ") for line in body.split("\n\n") if line]
    assert (status, lines[-1]) == (200, "[DONE]")
    assert "".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1]) == "Hi you"


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Basic {key}", "{key}"])
def test_a_call_without_the_key_is_refused(server, runner, authorization):
    status, body = call(server, "/models", Authorization=authorization.format(key=server.key))
    assert (status, json.loads(body)["error"]["code"]) == (401, "invalid_api_key")
    assert runner.requests == []


def test_a_web_page_that_resolves_its_name_to_this_computer_is_refused(server):
    status, body = call(server, "/models", Host="evil.example")
    assert (status, json.loads(body)["error"]["code"]) == (403, "invalid_host")
    assert call(server, "/models", Host=f"localhost:{server.port}")[0] == 200


def test_errors_have_the_shape_of_openai(server):
    for path, body, status in (
        ("/nothing", None, 404), ("/chat/completions", None, 405), ("/completions", {"model": "tiny", "x": 1}, 400),
        ("/completions", {"model": "tiny", "prompt": "crash"}, 500),
    ):  # fmt: skip
        found, text = call(server, path, body)
        assert found == status
        assert json.loads(text)["error"].keys() == {"message", "type", "param", "code"}
        assert "secret" not in text


def test_an_error_of_the_run_names_the_field_of_the_call(server):
    status, body = complete(server, "fail")
    assert (status, body["error"]["param"]) == (400, "logit_bias")


def test_every_call_is_counted_as_answered_or_refused(server):
    complete(server)
    for path, body, headers in (
        ("/models", None, {"Authorization": "Bearer wrong"}), ("/nothing", None, {}), ("/models/other", None, {}),
        ("/completions", {"model": "tiny", "x": 1}, {}), ("/completions", {"model": "tiny", "prompt": "fail"}, {}),
        ("/completions", {"model": "tiny", "prompt": "fail", "stream": True}, {}),
    ):  # fmt: skip
        call(server, path, body, **headers)
    assert server.counts[:2] == (1, 6)
    assert server.counts.last_refusal == "It is wrong. Change it."
    assert server.counts.sentence() == "1 request answered, 6 refused."


def test_a_body_that_is_no_json_is_refused(server, monkeypatch):
    request = urllib.request.Request(
        f"{server.address}/completions", b"{", {"Authorization": f"Bearer {server.key}"}, method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=WAIT_SECONDS)
    refused.value.close()
    assert refused.value.code == 400
    monkeypatch.setattr(http_server, "MAX_BODY_BYTES", 10)
    assert complete(server)[0] == 413


def test_calls_run_one_after_another(server, runner):
    threads = [threading.Thread(target=complete, args=(server, "hold")) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert runner.has_begun.wait(WAIT_SECONDS)
    runner.release.set()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert (len(runner.requests), runner.most_running) == (3, 1)


def test_too_many_waiting_calls_are_refused(server, runner, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_WAITING", 1)
    first = threading.Thread(target=complete, args=(server, "hold"))
    first.start()
    assert runner.has_begun.wait(WAIT_SECONDS)
    assert complete(server)[0] == 429
    runner.release.set()
    first.join(WAIT_SECONDS)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_client_that_goes_away_stops_its_run(server, runner, is_streamed):
    body = json.dumps({"model": "tiny", "prompt": "hold", "stream": is_streamed}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as client:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert runner.has_begun.wait(WAIT_SECONDS)
    assert runner.has_ended.wait(WAIT_SECONDS)
    assert runner.cancelled
    assert complete(server)[1]["choices"][0]["text"] == "Hi you"


def test_stop_ends_a_run_and_frees_the_port(runner):
    server = HttpServer(ServedModel("tiny", 64), runner, key=new_key())
    server.start()
    thread = threading.Thread(target=call, args=(server, "/completions", {"model": "tiny", "prompt": "hold"}))
    thread.start()
    assert runner.has_begun.wait(WAIT_SECONDS)
    server.stop()
    thread.join(WAIT_SECONDS)
    assert not server.is_running
    assert runner.cancelled
    again = HttpServer(ServedModel("tiny", 64), runner, key=new_key(), port=server.port)
    again.start()
    again.stop()


def test_a_port_in_use_is_refused_with_a_remedy(server, runner):
    with pytest.raises(ServerError) as refused:
        HttpServer(ServedModel("tiny", 64), runner, key="k", port=server.port)
    assert "0" in refused.value.remedy


def test_missing_packages_are_named(runner, monkeypatch):
    monkeypatch.setattr(http_server, "missing_packages", lambda: ["uvicorn"])
    with pytest.raises(ServerError, match="uvicorn") as refused:
        HttpServer(ServedModel("tiny", 64), runner, key="k")
    assert "pip install uvicorn" in refused.value.remedy


def test_the_command_listens_on_this_computer_by_default():
    assert make_parser().parse_args([]).host == "127.0.0.1"
    assert all(map(http_server.is_local, ("127.0.0.1", "::1", "localhost")))
    assert not any(map(http_server.is_local, ("0.0.0.0", "192.168.1.2", "example.org")))


def test_keys_are_random():
    assert new_key() != new_key()
    assert len(new_key()) > 30
