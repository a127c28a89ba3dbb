"""Servers that break HTTP itself: each ends in an error with cause and remedy, at a bounded cost."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from decodescope.core.errors import (
    EngineCutError,
    EngineError,
    EngineRefusedError,
    EngineReplyError,
    EngineUnreachableError,
)
from decodescope.core.remote import address, client, parse
from decodescope.core.remote.client import EngineClient
from decodescope.core.remote.http_stream import CancelledError, Timeouts
from tests.local_server import RequestHandler, serving

QUICK = Timeouts(connect=2, first_byte=20, between_chunks=20, max_attempts=1, pause=0.01)
IMPATIENT = Timeouts(connect=2, first_byte=0.2, between_chunks=0.2, max_attempts=1, pause=0.01)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MAX_LOOPBACK_BYTES = 32 * 2**20
"""More than the sockets of both sides hold."""


class RawServer:
    """A server that answers every request with the same bytes, which need not be HTTP."""

    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.pieces = pieces
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self.sent_bytes = 0
        self.has_answered = threading.Event()
        """Set after the first piece has been sent."""
        self.is_left = threading.Event()
        """Set when the client has closed the connection."""

    @property
    def client(self) -> EngineClient:
        return EngineClient(parse(f"{self.url}/v1"), QUICK)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        handler.close_connection = True
        try:
            for piece in self.pieces():
                handler.wfile.write(piece)
                handler.wfile.flush()
                self.sent_bytes += len(piece)
                self.has_answered.set()
        except OSError:
            self.is_left.set()

    def wait_until_left(self, handler: BaseHTTPRequestHandler) -> None:
        handler.connection.settimeout(10)
        with suppress(OSError):
            if not handler.connection.recv(1):
                self.is_left.set()


@contextmanager
def answering(*pieces: bytes, endless: bytes = b"", is_silent_after: bool = False) -> Iterator[RawServer]:
    """Serve these bytes, then `endless` for as long as the client reads, or nothing until the client closes."""

    def all_pieces() -> Iterator[bytes]:
        yield from pieces
        while endless and server.sent_bytes < MAX_LOOPBACK_BYTES:
            yield endless

    class HostileHandler(RequestHandler):
        def do_GET(self) -> None:
            server.answer(self)
            if is_silent_after:
                server.has_answered.set()
                server.wait_until_left(self)

        do_POST = do_GET

    server = RawServer(all_pieces)
    with serving(HostileHandler, threading.Event()) as server.url:
        yield server


def get(server: RawServer) -> object:
    return server.client.get("/v1/models", threading.Event())[0]


def stream(server: RawServer, cancel: threading.Event | None = None) -> list[object]:
    return list(server.client.stream("/v1/completions", {}, cancel or threading.Event()))


@pytest.mark.parametrize(
    ("pieces", "endless"),
    [
        pytest.param((OK + b"X-Header: ",), b"x" * 65_536, id="one header"),
        pytest.param((OK,), b"X-Header: x\r\n" * 5000, id="headers"),
        pytest.param((b"HTTP/1.1 200 ",), b"K" * 65_536, id="status line"),
        pytest.param((CHUNKED,), b"0" * 65_536, id="chunk size"),
    ],
)
@pytest.mark.parametrize("ask", [get, stream])
def test_endless_responses_are_aborted(
    pieces: tuple[bytes, ...], endless: bytes, ask: Callable[[RawServer], object]
) -> None:
    with answering(*pieces, endless=endless) as server:
        with pytest.raises(EngineError):
            ask(server)
        assert server.is_left.wait(10)
    assert server.sent_bytes < MAX_LOOPBACK_BYTES


def test_endless_response_body_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MAX_RESPONSE_BYTES", 100_000)
    with answering(CHUNKED, endless=b"400\r\n" + b" " * 1024 + b"\r\n") as server:
        with pytest.raises(EngineReplyError):
            get(server)
        assert server.is_left.wait(10)
    assert server.sent_bytes < MAX_LOOPBACK_BYTES


def test_endless_error_body_is_cut() -> None:
    with answering(b"HTTP/1.1 400 Bad\r\n\r\n", endless=b"no " * 10_000) as server:
        with pytest.raises(EngineRefusedError, match="400: no no"):
            get(server)
        assert server.is_left.wait(10)


def test_compressed_data_is_not_requested_and_not_decompressed() -> None:
    bomb = gzip.compress(b'{"data": []}' + b" " * 2**24)
    with answering(OK + b"Content-Encoding: gzip\r\n\r\n" + bomb) as server, pytest.raises(EngineReplyError):
        get(server)
    assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n", id="a chunk size that is no number"),
        pytest.param(CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", id="a negative chunk size"),
        pytest.param(CHUNKED + b"5\r\nhel", id="half a chunk"),
        pytest.param(OK + b"Content-Length: 50\r\n\r\n{", id="less than promised"),
        pytest.param(OK + b"Content-Length: 9\r\n\r\n[DONE]", id="less than promised, and no JSON"),
    ],
)
def test_a_broken_body_is_not_a_response(answer: bytes) -> None:
    with answering(answer) as server:
        with pytest.raises((EngineUnreachableError, EngineReplyError)) as error:
            get(server)
        assert error.value.remedy
        with pytest.raises((EngineCutError, EngineReplyError)) as cut:
            stream(server)
        assert cut.value.remedy


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200", id="half a status line"),
        pytest.param(OK + b"Content-Ty", id="half a header"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
        pytest.param(b"\x00\xff\xfe" * 1000 + b"\r\n\r\n", id="no text"),
        pytest.param(b"HTTP/1.1 9999 OK\r\n\r\n", id="a status that is none"),
    ],
)
def test_invalid_http_raises_an_error(answer: bytes) -> None:
    with answering(answer) as server:
        with pytest.raises((EngineUnreachableError, EngineReplyError)) as error:
            get(server)
        assert error.value.remedy
        with suppress(EngineUnreachableError):
            assert stream(server) == []


def test_responses_without_a_length_end_with_the_connection() -> None:
    with answering(b'HTTP/1.0 200 OK\r\n\r\n{"a"', b": 1}") as server:
        assert get(server) == {"a": 1}
    with answering(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b'\r\ndata: {"a": 1}\r\n') as server:
        assert stream(server) == [{"a": 1}]


def test_a_head_that_arrives_byte_by_byte_has_one_timeout() -> None:
    hold = threading.Event()

    def drip() -> Iterator[bytes]:
        yield OK
        while not hold.wait(0.02):
            yield b"x"

    with answering() as server:
        server.pieces = drip
        slow = EngineClient(server.client.address, IMPATIENT)
        with pytest.raises(EngineUnreachableError, match="has not answered for 0 seconds"):
            slow.get("/v1/models", threading.Event())
        assert server.is_left.wait(10)
        hold.set()


@pytest.mark.parametrize("pieces", [(), (OK,), (CHUNKED, b'10\r\ndata: {"a": 1}\n\n\r\n')])
def test_cancelling_closes_the_connection_at_any_time(pieces: tuple[bytes, ...]) -> None:
    cancel = threading.Event()
    with answering(*pieces, is_silent_after=True) as server:
        threading.Thread(target=lambda: server.has_answered.wait(10) and cancel.set()).start()
        with pytest.raises(CancelledError):
            stream(server, cancel)
        assert server.is_left.wait(10)


def test_cancelling_does_not_wait_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel, is_looked_up, hold = threading.Event(), threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        is_looked_up.set()
        hold.wait(20)
        raise OSError("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    threading.Thread(target=lambda: is_looked_up.wait(10) and cancel.set()).start()
    with pytest.raises(CancelledError):
        EngineClient(parse("https://engine.example/v1"), QUICK).get("/v1/models", cancel)
    assert not hold.is_set()
    hold.set()


def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(OK + b"\r\n{}") as other, answering() as server:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {other.url}/v1/models\r\nContent-Length: 0\r\n\r\n".encode()
        server.pieces = lambda: iter([moved])
        monkeypatch.setitem(address._session_keys, parse(f"{server.url}/v1").base, "sk-secret")
        for ask in (get, stream):
            with pytest.raises(EngineRefusedError, match="307") as error:
                ask(server)
            assert "the key was not sent there" in error.value.remedy
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert other.headers == []


def test_proxies_cookies_and_netrc_of_the_system_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with answering(OK + b"Set-Cookie: id=1\r\n\r\n{}") as server:
        assert get(server) == get(server) == {}
    for headers in server.headers:
        assert headers.keys() == {"host", "accept", "accept-encoding", "user-agent", "connection"}


def test_https_to_a_plain_http_server_raises_an_error() -> None:
    with answering(OK + b"\r\n{}") as server:
        server.url = server.url.replace("http:", "https:")
        with pytest.raises(EngineUnreachableError, match="no valid certificate, or does not support https") as error:
            get(server)
    assert "Plain http" in error.value.remedy


CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNvBkBF/HQ3AbFDGg
L3o0KkT9Du+KS0/gOpSuzSWJJtahRANCAAQ+17MUcCe73O207OsrHAaZ5lKxOuxS
U+qTKxEuSGdZjGzn4Z7MP2N6H4z0stom/NjhaoHk6N0A0Y6zUpU584QB
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBVjCB/KADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWxvY2FsaG9z
dDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
bG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEPtezFHAnu9zttOzr
KxwGmeZSsTrsUlPqkysRLkhnWYxs5+GezD9jeh+M9LLaJvzY4WqB5OjdANGOs1KV
OfOEAaM9MDswGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMB0GA1UdDgQWBBSP
d/1XkqphT8KrVtx+/GYikkZktjAKBggqhkjOPQQDAgNJADBGAiEAhcPZbu2G8aQf
YD80dCR5sU0z4OlzPF2uiBAnd2jBUpoCIQDgqE8NS2hK2RtdQd+1t/U2fTMRvi80
a720RDpGppL4cQ==
-----END CERTIFICATE-----
"""
"""A key, and its certificate for localhost, valid from 2020 to 2120 and signed by itself; used nowhere else."""


@contextmanager
def answering_over_tls(folder: Path) -> Iterator[EngineClient]:
    """Answer one request over TLS, if the client accepts the certificate in `folder`."""
    file = folder / "certificate.pem"
    file.write_text(CERTIFICATE, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def serve() -> None:
        with suppress(OSError), context.wrap_socket(listening.accept()[0], server_side=True) as connection:
            connection.recv(65_536)
            connection.sendall(OK + b"\r\n[]")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        yield EngineClient(parse(f"https://127.0.0.1:{listening.getsockname()[1]}/v1"), QUICK)
        thread.join()


def test_a_certificate_must_be_one_that_the_system_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering_over_tls(tmp_path) as engine:
        with pytest.raises(EngineUnreachableError, match=r"no valid certificate.*self.signed") as error:
            engine.get("/v1/models", threading.Event())
        assert "Plain http" in error.value.remedy
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    with answering_over_tls(tmp_path) as engine:
        assert engine.get("/v1/models", threading.Event())[0] == []


def test_an_address_may_be_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is made over IPv4, because not every machine has IPv6."""
    connect, hosts = socket.create_connection, []

    def connect_over_ipv4(place: tuple[str, int], *rest: Any, **named: Any) -> socket.socket:
        hosts.append(place[0])
        return connect(("127.0.0.1", place[1]), *rest, **named)

    monkeypatch.setattr(socket, "create_connection", connect_over_ipv4)
    with answering(OK + b"\r\n[]") as server:
        server.url = server.url.replace("127.0.0.1", "[::1]")
        assert get(server) == []
        assert server.headers[0]["host"] == server.url.removeprefix("http://")
    assert hosts == ["::1"]


@pytest.mark.parametrize("path", ["/v1/ü", "/v1/a b", "/v1/%41?x#y", "/v1/\r\nX: 1", "//other/v1"])
def test_path_cannot_inject_headers(path: str) -> None:
    with answering(OK + b"\r\n[]") as server:
        with suppress(EngineError):
            server.client.get(path, threading.Event())
    assert all("x" not in headers for headers in server.headers)


def test_closed_port_raises_engine_unreachable() -> None:
    with answering() as server:
        pass
    with pytest.raises(EngineUnreachableError, match=r"cannot be reached: \w"):
        get(server)
