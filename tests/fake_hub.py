"""A local fake hub with every possible fault, for the tests of search and download."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.local_server import RequestHandler, serving

LARGE = 10_000
"""Bytes from which on a file is stored as the hub stores large ones: elsewhere, by its SHA-256."""
LOGGED_IN = "hf_a_token_that_is_known"


@dataclass
class Repository:
    """One model of the hub, and what it does wrong."""

    files: dict[str, bytes]
    licence: str = "apache-2.0"
    downloads: int = 7
    gated: bool = False
    private: bool = False
    granted: bool = True
    """Whether who is logged in may have a gated one."""
    commit: str = "c0ffee" * 6 + "0000"
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """Bytes after which the connection ends, a number for each answer in turn."""
    lies: dict[str, bytes] = field(default_factory=dict)
    """Response that replaces a file."""

    def config(self) -> dict[str, Any]:
        return json.loads(self.files.get("config.json", b"{}"))


@dataclass
class Hub:
    """The hub's models, its faults, and the requests received."""

    models: dict[str, Repository] = field(default_factory=dict)
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Status and headers of the next responses to any request."""
    ignores_ranges: bool = False
    held: threading.Event = field(default_factory=threading.Event)
    """Large files are sent once it is set."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Path, range and token of every request, in turn."""
    address: str = ""

    def put(self, name: str, files: dict[str, bytes] | Path, **more: Any) -> Repository:
        """Have a model; of a folder all files."""
        if isinstance(files, Path):
            files = {file.name: file.read_bytes() for file in files.iterdir() if file.is_file()}
        self.models[name] = Repository(files, **more)
        return self.models[name]

    def sent(self, part: str) -> list[str]:
        """Return the ranges requested from paths that contain `part`."""
        return [ranged for path, ranged, _ in self.asked if part in path]


@contextmanager
def running() -> Iterator[Hub]:
    """A hub that answers until the end of the block."""
    hub = Hub()
    with serving(type("Answer", (_HubHandler,), {"hub": hub}), hub.held) as hub.address:
        yield hub


def digest(content: bytes) -> str:
    """Return a digest in the hub's format."""
    if len(content) >= LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _HubHandler(RequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.hub.asked.append((path, self.headers.get("Range", ""), token))
        if self.hub.refusals:
            status, headers = self.hub.refusals.pop(0)
            self._respond(status, headers)
        elif path == "/api/models":
            self._list({name: values[0] for name, values in parse_qs(url.query).items()})
        elif found := re.fullmatch(r"/api/models/(.+)", path):
            self._send_model(found[1], token)
        elif found := re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path):
            self._resolve(found[1], found[3], token)
        elif found := re.fullmatch(r"/store/(.+?)//(.+)", path):
            self._send(self.hub.models[found[1]], found[2])
        else:
            self._respond(404)

    do_HEAD = do_GET

    def _list(self, asked: dict[str, str]) -> None:
        wanted = asked.get("search", "").lower()
        seen = [name for name, model in self.hub.models.items() if wanted in name.lower() and not model.private]
        seen.sort(key=lambda name: -self.hub.models[name].downloads)
        reported = [self._model_info(name) for name in seen[: int(asked.get("limit", 1000))]]
        self._json([{key: value for key, value in one.items() if key != "siblings"} for one in reported])

    def _send_model(self, name: str, token: str) -> None:
        if self._is_known(name, token):
            self._json(self._model_info(name))

    def _model_info(self, name: str) -> dict[str, Any]:
        model = self.hub.models[name]
        config = model.config()
        return {
            "id": name, "modelId": name, "sha": model.commit, "private": model.private, "downloads": model.downloads,
            "gated": "auto" if model.gated else False, "tags": [_format_tag(model), f"license:{model.licence}"],
            "config": {key: config[key] for key in ("architectures", "model_type") if key in config},
            "siblings": [_sibling(path, content) for path, content in model.files.items()],
        }  # fmt: skip

    def _is_known(self, name: str, token: str) -> bool:
        model = self.hub.models.get(name)
        if model is not None and (not model.private or token == LOGGED_IN):
            return True
        self._respond(401 if not token else 404, {"X-Error-Code": "RepoNotFound"})
        return False

    def _resolve(self, name: str, path: str, token: str) -> None:
        if not self._is_known(name, token):
            return
        model = self.hub.models[name]
        if model.gated and not (token == LOGGED_IN and model.granted):
            self._respond(403 if token else 401, {"X-Error-Code": "GatedRepo"})
        elif path not in model.files:
            self._respond(404, {"X-Error-Code": "EntryNotFound"})
        elif len(model.files[path]) >= LARGE:
            elsewhere = self.hub.address.replace("127.0.0.1", "localhost")
            self._respond(302, {"Location": f"{elsewhere}/store/{name}//{path}", "X-Repo-Commit": model.commit})
        else:
            self._send(model, path)

    def _send(self, model: Repository, path: str) -> None:
        """Send a file, with the requested range and up to the point where a fault stops it."""
        content = model.lies.get(path, model.files[path])
        start = 0
        if (ranged := self.headers.get("Range")) and not self.hub.ignores_ranges:
            start = int(ranged.removeprefix("bytes=").rstrip("-"))
        if start >= len(content) > 0:
            self._respond(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        cuts = model.cuts.get(path, [])
        most = cuts.pop(0) if cuts else len(content)
        self.send_response(206 if start else 200)
        for name, value in {**headers, "Content-Length": str(len(content) - start)}.items():
            self.send_header(name, value)
        self.end_headers()
        if len(content) >= LARGE:
            self.wfile.write(content[start : start + min(most, 1000)])
            self.hub.held.wait(20)
            self.wfile.write(content[start + min(most, 1000) : start + most])
        else:
            self.wfile.write(content[start : start + most])
        self.close_connection = most < len(content) - start

    def _json(self, data: object) -> None:
        self._respond(200, {"Content-Type": "application/json"}, json.dumps(data).encode())

    def _respond(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _format_tag(model: Repository) -> str:
    return "gguf" if any(path.endswith(".gguf") for path in model.files) else "safetensors"


def _sibling(path: str, content: bytes) -> dict[str, Any]:
    reported: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": digest(content)}
    if len(content) >= LARGE:
        reported |= {"blobId": "0" * 40, "lfs": {"sha256": digest(content), "size": len(content), "pointerSize": 134}}
    return reported
