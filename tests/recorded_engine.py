"""Replies of real engines, recorded once and repeated to the client in tests.

`python -m tests.recorded_engine ADDRESS MODEL FILE` records the requests of `exchanges` with a running engine;
`replayed(FILE)` answers the same requests in a test.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from decodescope import core
from tests.local_server import RequestHandler, serving

FOLDER = Path(__file__).parent / "core" / "recorded_engines"
GREEDY = core.Request("The capital of France is", {"max_new_tokens": 8, "do_sample": False}, top_n=3)
REPEATED = core.Request(
    "one two three four five six. one two three four five six. one two three",
    {"max_new_tokens": 10, "do_sample": False}, top_n=3,
)  # fmt: skip
CHAT = core.Request([{"role": "user", "content": "Say yes."}], {"max_new_tokens": 5, "do_sample": False}, top_n=3)
SCORED = "The quick brown fox jumps"


class Reply(NamedTuple):
    """Answer of an engine."""

    status: int
    kind: str
    """Content type."""
    text: str


def _key(method: str, path: str, body: bytes) -> str:
    content = json.dumps(json.loads(body), sort_keys=True) if body else ""
    return f"{method} {path} {content}"


@contextmanager
def _serving(answer: Callable[[str, str, bytes], Reply]) -> Iterator[str]:
    """Serve on this computer and yield the address."""

    class RecordedHandler(RequestHandler):
        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, text = answer(self.command, self.path, body)
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _respond

    with serving(RecordedHandler, threading.Event()) as address:
        yield address


@contextmanager
def recorded(address: str, found: dict[str, Reply]) -> Iterator[str]:
    """Pass requests on to an engine and keep its replies in `found`; yield the address to use instead."""

    def answer(method: str, path: str, body: bytes) -> Reply:
        request = urllib.request.Request(address + path, body or None, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                one = Reply(reply.status, reply.headers.get("Content-Type", ""), reply.read().decode())
        except urllib.error.HTTPError as error:
            one = Reply(error.code, error.headers.get("Content-Type", ""), error.read().decode())
        found[_key(method, path, body)] = one
        return one

    with _serving(answer) as own:
        yield own


@contextmanager
def replayed(name: str) -> Iterator[core.RemoteModel]:
    """Connect to an engine whose replies were recorded in the file of that name. Other requests fail the test."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    known = {key: Reply(*reply) for key, reply in content["replies"].items()}
    with _serving(lambda method, path, body: known[_key(method, path, body)]) as address:
        yield _connect(address, content["model"])


def _connect(address: str, name: str) -> core.RemoteModel:
    model = core.load(f"{address}/v1#{name}")
    assert isinstance(model, core.RemoteModel)
    return model


def exchanges(model: core.RemoteModel) -> dict[str, Any]:
    """Return the results of every kind of request."""
    return {
        "greedy": core.run(model, GREEDY),
        "repeated": core.run(model, REPEATED),
        "chat": core.run(model, CHAT),
        "scored": core.score(model, SCORED) if model.kind.scores else None,
    }


def main() -> None:
    """Record an engine."""
    address, name, file = sys.argv[1:]
    found: dict[str, Reply] = {}
    with recorded(address, found) as own:
        exchanges(_connect(own, name))
    FOLDER.mkdir(exist_ok=True)
    content = {"model": name, "replies": {key: list(reply) for key, reply in sorted(found.items())}}
    (FOLDER / f"{file}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
