"""The HTTP server: authorization, the queue of calls, and streams of server-sent events.

Starlette and uvicorn (the extra `server`) are imported when a server is created.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from decodescope.core.errors import DecodescopeError
from decodescope.core.server.call_fields import ApiError
from decodescope.core.server.openai_api import (
    ApiResponse,
    CompletionCall,
    ServedModel,
    ServedRequest,
    parse_call,
    to_api_error,
)
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, mark, tr, trn

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request as HttpRequest
    from starlette.types import ASGIApp

    from decodescope.core.events import Event

log = logging.getLogger(__name__)

LOCAL_HOST = "127.0.0.1"
MAX_BODY_BYTES = 10_000_000
MAX_WAITING = 32
"""Calls that wait for their turn; further ones are told to come later."""
_START_SECONDS = 15.0
_STOP_SECONDS = 5.0
_DONE = "[DONE]"

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class ServerError(DecodescopeError):
    """The server cannot start."""

    title = mark("The model cannot be served")


class CallCounts(NamedTuple):
    """Number of calls so far."""

    answered: int = 0
    refused: int = 0
    """Calls that got an error."""
    last_refusal: str = ""

    def sentence(self) -> str:
        """Return the numbers in words."""
        answered = trn("{n:,} request answered", "{n:,} requests answered", self.answered).format(n=self.answered)
        refused = trn("{n:,} refused", "{n:,} refused", self.refused).format(n=self.refused)
        return tr("{answered}, {refused}.").format(answered=answered, refused=refused)


class Runner(Protocol):
    """Runs one request at a time, in the server's thread for runs. Set `cancel` to stop it before its next pass."""

    def __call__(self, request: ServedRequest, cancel: threading.Event) -> Iterator[Event]:
        """Yield the events of the run; raise what ends it."""


def new_key() -> str:
    """Return a random key, as clients of OpenAI send it."""
    return f"sk-{secrets.token_urlsafe(24)}"


def missing_packages() -> list[str]:
    """Return the packages of the extra `server` that are not installed."""
    return [name for name in ("starlette", "uvicorn") if find_spec(name) is None]


def is_local(host: str) -> bool:
    """Return whether only programs on this computer can connect to an address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class HttpServer:
    """Serves one model on a thread of its own, from `start` to `stop`.

    Each call needs the key. Calls are answered one after another; one whose client goes away is stopped.
    """

    def __init__(
        self,
        model: ServedModel,
        runner: Runner,
        *,
        key: str,
        host: str = LOCAL_HOST,
        port: int = 0,
        on_call: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`port` 0: any free one. `on_call` receives a line about each call that ends, in the server's thread, after it
        was counted.

        Raises ServerError if the address cannot be used, or if the extra `server` is not installed.
        """
        if missing := missing_packages():
            raise ServerError(
                tr("The server needs packages that are not installed: {names}.").format(names=join_names(missing)),
                tr("Install them with {command}.").format(command=f"pip install {' '.join(missing)}"),
            )
        self.model, self.key, self.host = model, key, host
        self._runner, self._on_call = runner, on_call
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._turn: asyncio.Lock | None = None
        self._waiting = 0
        self.counts = CallCounts()
        self._running = set[threading.Event]()
        """Events that stop the runs in progress."""

    @property
    def address(self) -> str:
        """The base address for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    @property
    def is_running(self) -> bool:
        """Whether the server accepts calls."""
        return self._server is not None and self._server.started and not self._server.should_exit

    def start(self) -> None:
        """Accept calls from now on. Raises ServerError."""
        import uvicorn

        config = uvicorn.Config(
            self._application(), log_config=None, access_log=False, lifespan="off", loop="asyncio", http="h11",
            ws="none", server_header=False, timeout_graceful_shutdown=2, limit_concurrency=2 * MAX_WAITING,
        )  # fmt: skip
        self._server = server = uvicorn.Server(config)
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(server, started), name="server", daemon=True)
        self._thread.start()
        if not started.wait(_START_SECONDS):
            raise ServerError(tr("The server did not start in time."), tr("Try again."))

    def stop(self) -> None:
        """Stop the runs in progress and close all connections."""
        for cancel in list(self._running):
            cancel.set()
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        self._socket.close()

    def wait(self) -> None:
        """Wait until the server has ended; KeyboardInterrupt passes through."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)

    def _serve(self, server: uvicorn.Server, started: threading.Event) -> None:
        async def serve() -> None:
            self._turn = asyncio.Lock()
            asyncio.get_running_loop().call_later(0.0, started.set)
            await server.serve(sockets=[self._socket])
            await asyncio.sleep(0)  # connections that were just closed give back their sockets

        asyncio.run(serve())

    def _application(self) -> ASGIApp:
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route

        async def models(request: HttpRequest) -> Response:
            return JSONResponse({"object": "list", "data": [self.model.body]})

        async def model(request: HttpRequest) -> Response:
            if request.path_params["name"] != self.model.name:
                text = tr("There is no such model here. This server has “{name}”.").format(name=self.model.name)
                raise ApiError(text, 404, param="model", code="model_not_found")
            return JSONResponse(self.model.body)

        async def on_api_error(request: HttpRequest, error: Exception) -> Response:
            assert isinstance(error, ApiError)
            self.report_refusal(error)
            return JSONResponse(error.body, error.status, _headers(error))

        async def on_http_error(request: HttpRequest, error: Exception) -> Response:
            status = getattr(error, "status_code", 500)
            text = tr("{method} {path} is not part of this API.").format(method=request.method, path=request.url.path)
            refused = ApiError(text, status, code="unknown_url")
            self.report_refusal(refused)
            return JSONResponse(refused.body, status)

        routes = [
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{name:path}", model, methods=["GET"]),
            Route("/v1/chat/completions", _Endpoint(self, is_chat=True), methods=["POST"]),
            Route("/v1/completions", _Endpoint(self, is_chat=False), methods=["POST"]),
        ]
        handlers: Mapping[Any, Any] = {ApiError: on_api_error, 404: on_http_error, 405: on_http_error}
        return _Guard(Starlette(routes=routes, exception_handlers=handlers), self)

    async def answer(self, call: CompletionCall, cancel: threading.Event, send: Send) -> None:
        """Wait for the turn of a call, run it and send the answer. Raises what ends it before anything is sent."""
        assert self._turn is not None
        if self._waiting >= MAX_WAITING:
            raise ApiError(tr("Too many requests are waiting. Try again later."), 429, kind="rate_limit_error")
        self._waiting += 1
        try:
            async with self._turn:
                if cancel.is_set():
                    return
                self._running.add(cancel)
                try:
                    await self._run(call, cancel, send)
                finally:
                    self._running.discard(cancel)
        finally:
            self._waiting -= 1

    async def _run(self, call: CompletionCall, cancel: threading.Event, send: Send) -> None:
        answer, stream = ApiResponse(call), _EventStream(send)
        try:
            for request in call.requests():
                answer.begin()
                async for event in _pumped(self._runner, request, cancel):
                    for chunk in answer.feed(event):
                        if cancel.is_set():
                            break  # the client has gone away
                        await stream.write(json.dumps(chunk, ensure_ascii=False))
            if not call.is_streamed:
                await _send_json(send, answer.body)
            else:
                if (last := answer.last_chunk()) is not None:
                    await stream.write(json.dumps(last, ensure_ascii=False))
                await stream.write(_DONE)
                await stream.close()
        except Exception as error:
            if cancel.is_set():
                await stream.close()
                return
            translated = to_api_error(error, "messages" if call.is_chat else "prompt")
            if translated.status >= 500 and not isinstance(error, DecodescopeError | ApiError):
                log.exception("A served run failed")
            if not stream.is_open:
                raise translated from error
            self.report_refusal(translated, call.is_chat)
            await stream.write(json.dumps(translated.body, ensure_ascii=False))
            await stream.close()
        else:
            usage = answer.body["usage"]
            self.counts = self.counts._replace(answered=self.counts.answered + 1)
            self._on_call(
                tr("{kind}: {prompt} + {new} tokens").format(
                    kind=_call_kind(call.is_chat),
                    prompt=f"{usage['prompt_tokens']:,}", new=f"{usage['completion_tokens']:,}",
                )
            )  # fmt: skip

    def report_refusal(self, error: ApiError, is_chat: bool | None = None) -> None:
        """Count a call that gets an error and pass on a line about it; `is_chat` is None if its kind is not known."""
        self.counts = self.counts._replace(refused=self.counts.refused + 1, last_refusal=error.message)
        text = tr("{kind}: error {status}. {message}")
        self._on_call(text.format(kind=_call_kind(is_chat), status=error.status, message=error.message))


def _call_kind(is_chat: bool | None) -> str:
    return "chat" if is_chat else "completion" if is_chat is not None else tr("call")


class _Guard:
    """ASGI application that refuses calls without the key, and those of web pages that found this server.

    A page of another site can resolve its own name to this computer; its calls carry that name as host.
    """

    def __init__(self, application: ASGIApp, server: HttpServer) -> None:
        self._application, self._server = application, server
        self._hosts = {"127.0.0.1", "localhost", "[::1]"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] == "http" and (error := self._refusal(scope)) is not None:
            self._server.report_refusal(error)
            await _send_json(send, error.body, error.status, _headers(error))
            return
        await self._application(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").rsplit(":", 1)[0] if is_local(self._server.host) else ""
        if host and host not in self._hosts:
            return ApiError(tr("This host is not served: {name}.").format(name=host), 403, code="invalid_host")
        scheme, _, key = headers.get(b"authorization", "").partition(" ")
        is_known = hmac.compare_digest(key.strip().encode("latin-1", "replace"), self._server.key.encode())
        if scheme.lower() != "bearer" or not is_known:
            text = tr("The key is missing or wrong. Send it as “Authorization: Bearer KEY”.")
            return ApiError(text, 401, code="invalid_api_key")
        return None


class _Endpoint:
    """ASGI application of one kind of call. It watches the connection: a client that goes away stops its run."""

    def __init__(self, server: HttpServer, is_chat: bool) -> None:
        self._server, self._is_chat = server, is_chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        cancel = threading.Event()
        watcher = None
        try:
            call = parse_call(await _read_json(receive), self._server.model, self._is_chat)
            watcher = asyncio.create_task(_watch(receive, cancel))
            await self._server.answer(call, cancel, send)
        except ApiError as error:
            self._server.report_refusal(error, self._is_chat)
            await _send_json(send, error.body, error.status, _headers(error))
        finally:
            cancel.set()
            if watcher is not None:
                watcher.cancel()


async def _read_json(receive: Receive) -> object:
    """Return the body of a call. Raises ApiError."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(tr("The connection was closed."), 499)
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise ApiError(tr("The body has more than {count:,} bytes.").format(count=MAX_BODY_BYTES), 413)
        if not message.get("more_body"):
            break
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ApiError(tr("The body is not valid JSON in UTF-8.")) from None


async def _watch(receive: Receive, cancel: threading.Event) -> None:
    """Set `cancel` when the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    cancel.set()


async def _pumped(runner: Runner, request: ServedRequest, cancel: threading.Event) -> AsyncIterator[Event]:
    """Yield the events of a run that computes in a thread; wait for its end in any case."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()  # ends with an error or None

    def post(item: Event | BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def work() -> None:
        try:
            for event in runner(request, cancel):
                post(event)
        except BaseException as error:  # it is raised in the loop
            post(error)
        else:
            post(None)

    thread = threading.Thread(target=work, name="served run", daemon=True)
    thread.start()
    has_ended = False
    try:
        while True:
            item = await queue.get()
            has_ended = item is None or isinstance(item, BaseException)
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        if not has_ended:
            cancel.set()
            while isinstance(await queue.get(), Event):
                pass


class _EventStream:
    """A response of server-sent events; it begins with the first one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.is_open = False

    async def write(self, data: str) -> None:
        if not self.is_open:
            self.is_open = True
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})

    async def close(self) -> None:
        if self.is_open:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_json(send: Send, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
    body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
    all_headers = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _headers(error: ApiError) -> dict[str, str]:
    return (
        {"www-authenticate": "Bearer"} if error.status == 401 else {"retry-after": "5"} if error.status == 429 else {}
    )


def _listen(host: str, port: int) -> socket.socket:
    """Return a bound socket. Raises ServerError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServerError(
            tr("The address {host} cannot be used: {reason}.").format(host=host, reason=system_error_reason(error)),
            tr("Use {host}, which only this computer can reach.").format(host=LOCAL_HOST),
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ServerError(
            tr("Port {port} of {host} cannot be used: {reason}.").format(
                port=port, host=host, reason=system_error_reason(error)
            ),
            tr("Choose another port, or 0 for any free one."),
        ) from error
    return listener
