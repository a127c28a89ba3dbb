"""A hub, mirror or proxy with wrong types, lengths or delays in its responses raises errors with a remedy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from huggingface_hub import constants

from decodescope.app.features.downloads.panel import model_page
from decodescope.core import catalog
from decodescope.core.catalog import hub_errors, hub_requests
from decodescope.core.catalog.hub_requests import InvalidResponseError, read_limited
from decodescope.core.errors import DecodescopeError, HubError
from tests.local_server import RequestHandler, serving

GOOD: dict[str, Any] = {
    "id": "o/m", "modelId": "o/m", "sha": "a" * 40, "downloads": 5, "tags": ["license:mit"],
    "config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "siblings": [{"rfilename": "config.json", "size": 2, "blobId": "b" * 40}],
}  # fmt: skip
DEEP = b'{"id": "o/m", "config": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001
ODD: list[Any] = [5, -1, 1.5, 10**400, None, True, "x", "x" * 5000, [], [None], [5], {}, {"a": 5}, "a\0b", "../../x"]
FIELDS = ("id", "sha", "downloads", "tags", "config", "gated", "private", "siblings")


class Answers(RequestHandler):
    """Handler that sends the same body for every request."""

    body: ClassVar[bytes] = b""
    status: ClassVar[int] = 200
    headers_sent: ClassVar[dict[str, str]] = {}
    endless: ClassVar[bool] = False
    sent: ClassVar[int] = 0

    def do_GET(self) -> None:
        body = b"[" + self.body + b"]" if "/api/models?" in self.path and self.body[:1] == b"{" else self.body
        self.send_response(self.status)
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        if not self.endless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.endless:
            while True:
                self.wfile.write(b" " * 65_536)
                type(self).sent += 65_536
        self.wfile.write(body)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Answers, threading.Event()) as address:
        yield address


@pytest.fixture
def hub(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Answers]:
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("decodescope.core.catalog.hub_requests._MAX_RETRIES", 0)
    Answers.body, Answers.status, Answers.headers_sent, Answers.endless, Answers.sent = b"", 200, {}, False, 0
    return Answers


def check(call: Any) -> None:
    """It gives models that can be shown, or an error with its cause."""
    try:
        found = call()
    except DecodescopeError as error:
        if not error.cause:
            raise
        return
    for model in found if isinstance(found, tuple) else (found,):
        assert isinstance(model, catalog.HubModel)
        assert model_page.facts_text(model)
        assert model_page.short_facts_text(model)
        assert hub_requests.is_valid_model_name(model.name)


@pytest.mark.parametrize("field", FIELDS)
def test_field_of_a_wrong_type_raises_no_raw_error(field: str, hub: type[Answers]) -> None:
    for value in ODD:
        hub.body = json.dumps({**GOOD, field: value}).encode()
        check(lambda: catalog.find("m"))
        check(lambda: catalog.look("o/m"))


@pytest.mark.parametrize("field", ["rfilename", "size", "blobId", "lfs"])
def test_file_entry_of_a_wrong_type_raises_no_raw_error(field: str, hub: type[Answers]) -> None:
    for value in [*ODD, {"size": 5, "sha256": 5}, {"size": "x", "sha256": "c" * 64}, {"sha256": "c" * 64}]:
        hub.body = json.dumps({**GOOD, "siblings": [{**GOOD["siblings"][0], field: value}]}).encode()
        check(lambda: catalog.look("o/m"))


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"5", b'"x"', b"{", b"[" * 50_000, b'{"a":' * 50_000, DEEP, b'{"id": NaN}', b'{"downloads": 1e309}',
     b"\xff\xfe", b"<html>", b"[5]", b"[[]]", b"[null]", b'{"id": "\\ud800"}'],
)  # fmt: skip
def test_invalid_response_body_raises_an_error_with_a_remedy(body: bytes, hub: type[Answers]) -> None:
    hub.body = body
    for call in (lambda: catalog.find("m"), lambda: catalog.look("o/m"), lambda: catalog.download("o/m")):
        with pytest.raises(DecodescopeError) as error:
            call()
        assert error.value.cause
        assert error.value.remedy


def test_invalid_search_entry_does_not_hide_the_others(hub: type[Answers]) -> None:
    entries = [{"id": 5}, GOOD, {"id": "../x"}]
    assert [answer.id for answer in hub_requests.read_models(json.dumps(entries).encode())] == ["o/m"]
    assert hub_requests.read_models(b"[]") == []
    with pytest.raises(InvalidResponseError):
        hub_requests.read_models(b'[{"id": 5}]')


@pytest.mark.parametrize(
    "name", ["../../x", "a\0b", "/etc", "o/m/x", "..", "o/..", "C:\\x", "o/m.git", "o--m/x", "", " "]
)
def test_invalid_name_from_the_hub_is_not_used_as_a_folder(name: str, hub: type[Answers], tmp_path: Path) -> None:
    hub.body = json.dumps({**GOOD, "id": name}).encode()
    with pytest.raises(DecodescopeError):
        catalog.download("o/m")
    assert not list(tmp_path.rglob("models--*"))


def test_renamed_model_keeps_the_requested_name(hub: type[Answers]) -> None:
    hub.body = json.dumps({**GOOD, "id": "other/name"}).encode()
    assert catalog.look("o/m").name == "o/m"


@pytest.mark.parametrize("status", [200, 404, 500])
def test_endless_response_body_is_aborted(status: int, hub: type[Answers], monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("SEARCH_BYTES", "MODEL_BYTES", "ERROR_BYTES"):
        monkeypatch.setattr(hub_requests, limit, 200_000)
    hub.endless, hub.status = True, status
    for call in (lambda: catalog.find("m"), lambda: catalog.look("o/m")):
        with pytest.raises(HubError):
            call()
    assert hub.sent < 64 * 2**20  # what the system keeps of a connection on its way


def test_too_slow_response_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(hub_requests.time, "monotonic", lambda: float(next(clock)))
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x"

    with pytest.raises(InvalidResponseError, match="incomplete"):
        read_limited(pieces(), 10**9)
    assert read < 20


def error_with(headers: dict[str, str]) -> Any:
    return SimpleNamespace(response=SimpleNamespace(headers=headers, status_code=429))


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("5", 5.0), ("1e309", 86_400.0), ("inf", 86_400.0), ("1e300", 86_400.0), ("-5", 0.0), ("nan", None), ("", None),
     ("soon", None), ("9" * 5000, 86_400.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
     ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0), ("Fri, 31 Dec 99999 23:59:59 GMT", None)],
)  # fmt: skip
def test_retry_after_is_parsed_and_limited(told: str, seconds: float | None) -> None:
    assert hub_errors.waiting_time(error_with({"Retry-After": told})) == seconds


@pytest.mark.parametrize("reset", ["9" * 30, "9" * 5000])
def test_rate_limit_reset_time_is_limited(reset: str) -> None:
    found = hub_errors.waiting_time(error_with({"ratelimit": f'"api";r=0;t={reset}'}))
    assert found is None or found <= 86_400


def test_error_for_an_infinite_wait_states_no_infinity(hub: type[Answers]) -> None:
    hub.status, hub.headers_sent, hub.body = 429, {"Retry-After": "1e309"}, b"{}"
    with pytest.raises(DecodescopeError) as error:
        catalog.find("m")
    assert "inf" not in str(error.value)
