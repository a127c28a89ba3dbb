"""A local HTTP server with canned responses, as a context manager."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RequestHandler(BaseHTTPRequestHandler):
    """Handler that prints no line for each request."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        """Ignore errors of clients that have disconnected, as some tests intend."""


@contextmanager
def serving(answer: type[BaseHTTPRequestHandler], held: threading.Event) -> Iterator[str]:
    """Yield the server's address. Its answers wait for `held`, which is set at the beginning and at the end."""
    held.set()
    server = _Server(("127.0.0.1", 0), answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        held.set()
        server.shutdown()
        server.server_close()
        thread.join()
