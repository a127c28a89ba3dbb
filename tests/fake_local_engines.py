"""Ollama and LM Studio on this computer: replies by hand in the shapes of their published schemas, with faults."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.local_server import RequestHandler, serving

STORY = ((" there", {" there": 0.7, " a": 0.2}), (" was", {" was": 0.9, " lived": 0.08}),
         (" a", {" a": 0.6, " one": 0.3}), (" 🦊", {" 🦊": 0.5, " dog": 0.4}), (".", {".": 0.8, "!": 0.1}))  # fmt: skip
"""Piece, and the likeliest pieces with their probabilities."""
OLLAMA_MODELS: tuple[dict[str, Any], ...] = (
    {"name": "tale:1b", "model": "tale:1b", "size": 1_321_098_329, "digest": "0" * 64, "capabilities": ["completion"],
     "details": {"format": "gguf", "family": "llama", "families": ["llama"], "parameter_size": "1.2B",
                 "quantization_level": "Q8_0"}},
    {"name": "story:latest", "model": "story:latest", "size": 97_000_000, "digest": "1" * 64,
     "details": {"format": "gguf", "family": "llama", "parameter_size": "134.52M", "quantization_level": "Q4_K_M"}},
    {"name": "huge:cloud", "model": "huge:cloud", "size": 384, "remote_model": "huge", "digest": "2" * 64,
     "remote_host": "https://ollama.com:443", "details": {"family": "gptoss", "parameter_size": "120B"}},
    {"name": "embed:latest", "model": "embed:latest", "size": 274_302_450, "digest": "3" * 64,
     "details": {"family": "nomic-bert", "parameter_size": "137M", "quantization_level": "F16"}},
)  # fmt: skip
LM_STUDIO_MODELS: tuple[dict[str, Any], ...] = (
    {"type": "llm", "publisher": "someone", "key": "someone/tale-3b", "display_name": "Tale 3B",
     "architecture": "qwen2", "quantization": {"name": "Q4_K_M", "bits_per_weight": 4},
     "size_bytes": 1_929_903_264, "params_string": "3B",
     "loaded_instances": [{"id": "someone/tale-3b", "config": {"context_length": 4096}}], "max_context_length": 32_768,
     "format": "gguf"},
    {"type": "embedding", "publisher": "nomic-ai", "key": "text-embedding-nomic", "display_name": "Nomic",
     "quantization": {"name": "F16", "bits_per_weight": 16}, "size_bytes": 274_290_560, "params_string": None,
     "loaded_instances": [], "max_context_length": 2048, "format": "gguf"},
)  # fmt: skip
OLDER_LM_STUDIO_MODELS: tuple[dict[str, Any], ...] = (
    {"id": "tale-3b", "object": "model", "type": "llm", "publisher": "someone", "arch": "qwen2", "state": "loaded",
     "compatibility_type": "gguf", "quantization": "Q4_K_M", "max_context_length": 32_768,
     "loaded_context_length": 8192},
    {"id": "text-embedding-nomic", "object": "model", "type": "embeddings", "arch": "nomic-bert",
     "state": "not-loaded", "compatibility_type": "gguf", "quantization": "Q4_0", "max_context_length": 2048},
)  # fmt: skip


@dataclass
class LocalServer:
    """One engine, its faults, and the requests received."""

    kind: str
    version: str = "0.13.0"
    story: tuple[tuple[str, dict[str, float]], ...] = STORY
    bodies: dict[str, object] = field(default_factory=dict)
    """Path → JSON or bytes that replace the right answer."""
    key: str = ""
    is_old: bool = False
    """LM Studio without `/api/v1`."""
    fails_after: int | None = None
    """Tokens after which Ollama reports an error."""
    held: threading.Event = field(default_factory=threading.Event)
    """The second token comes once it is set."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when the client has closed the connection in the middle."""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    """Path and body of every request."""
    keys: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def paths(self) -> list[str]:
        return [path for path, _body in self.requests]

    def name(self, model: str) -> str:
        """Return the name to pass to `core.load`."""
        return f"{self.url}/v1#{model}"

    def reply_to(self, path: str) -> object:
        """Return the JSON for a GET request; None if there is none."""
        if self.kind == "ollama":
            return {
                "/api/version": {"version": self.version},
                "/api/tags": {"models": list(OLLAMA_MODELS)},
                "/api/ps": {"models": [{"name": "tale:1b", "context_length": 4096}]},
                "/v1/models": {"data": [{"id": one["name"], "owned_by": "library"} for one in OLLAMA_MODELS]},
            }.get(path)
        replies: dict[str, object] = {
            "/api/v0/models": {"object": "list", "data": list(OLDER_LM_STUDIO_MODELS)},
            "/v1/models": {"data": [{"id": one["key"], "owned_by": "organization_owner"} for one in LM_STUDIO_MODELS]},
        }
        return (replies if self.is_old else {**replies, "/api/v1/models": {"models": list(LM_STUDIO_MODELS)}}).get(path)


@contextmanager
def running(kind: str, **more: Any) -> Iterator[LocalServer]:
    """An engine (`ollama`, `lm_studio`) that answers until the end of the block."""
    server = LocalServer(kind, **more)
    with serving(type("Answer", (_LocalEngineHandler,), {"server_state": server}), server.held) as server.url:
        yield server


class _LocalEngineHandler(RequestHandler):
    server_state: LocalServer

    def version_string(self) -> str:
        return ""

    def do_GET(self) -> None:
        self._answer(self.server_state.reply_to(self.path), None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer({"model_info": {"general.architecture": "llama", "llama.vocab_size": 49_152}}
                     if self.path == "/api/show" and self.server_state.kind == "ollama" else None, body)  # fmt: skip

    def _answer(self, reply: object, body: Any) -> None:
        state = self.server_state
        state.requests.append((self.path, body))
        key = self.headers.get("Authorization", "")
        state.keys.append(key)
        if state.key and key != f"Bearer {state.key}":
            self._send(401, {"error": {"message": "Malformed LM Studio API token provided"}})
        elif self.path in state.bodies:
            self._send(200, state.bodies[self.path])
        elif reply is not None:
            self._send(200, reply)
        elif body is not None and self.path in ("/api/generate", "/api/chat") and state.kind == "ollama":
            self._stream(body, "application/x-ndjson", _ollama_lines(state, body))
        elif body is not None and self.path.startswith("/v1/") and state.kind == "lm_studio":
            self._stream(body, "text/event-stream", _lm_studio_lines(state, body))
        else:
            self._send(404, {"error": "404 page not found"})

    def _send(self, status: int, value: object) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: Any, kind: str, lines: Iterator[bytes]) -> None:
        state = self.server_state
        if state.kind == "ollama" and body["model"] not in {one["name"] for one in OLLAMA_MODELS}:
            self._send(404, {"error": f"model '{body['model']}' not found"})
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        try:
            for number, line in enumerate(lines):
                if number == 1:
                    state.held.wait(30)
                self.wfile.write(line)
                self.wfile.flush()
        except OSError:
            state.left.set()


def _ollama_lines(state: LocalServer, body: Any) -> Iterator[bytes]:
    count = min(body["options"].get("num_predict", 128), len(state.story))
    for number, (piece, likely) in enumerate(state.story[:count]):
        if state.fails_after == number:
            yield json.dumps({"error": "model runner has unexpectedly stopped"}).encode() + b"\n"
            return
        said = {"message": {"role": "assistant", "content": piece}} if "messages" in body else {"response": piece}
        message: dict[str, Any] = {"model": body["model"], **said, "done": False}
        if body.get("logprobs") and state.version >= "0.12.11":
            top = [_logprob(one, value) for one, value in list(likely.items())[: body.get("top_logprobs", 0)]]
            message["logprobs"] = [_logprob(piece, likely[piece]) | ({"top_logprobs": top} if top else {})]
        yield json.dumps(message).encode() + b"\n"
    end = {"done": True, "done_reason": "stop" if count == len(state.story) else "length", "prompt_eval_count": 4,
           "prompt_eval_duration": 20_000_000, "eval_count": count + 1, "eval_duration": 100_000_000}  # fmt: skip
    said = {"message": {"role": "assistant", "content": ""}} if "messages" in body else {"response": ""}
    yield json.dumps({"model": body["model"], **said, **end}).encode() + b"\n"


def _logprob(piece: str, probability: float) -> dict[str, Any]:
    return {"token": piece, "logprob": math.log(probability), "bytes": list(piece.encode())}


def _lm_studio_lines(state: LocalServer, body: Any) -> Iterator[bytes]:
    is_chat = "messages" in body
    for piece, _likely in state.story:
        choice = {"delta": {"role": "assistant", "content": piece}} if is_chat else {"text": piece}
        choices = [{"index": 0, "logprobs": None, "finish_reason": None, **choice}]
        yield b"data: " + json.dumps({"model": body["model"], "choices": choices}).encode() + b"\n\n"
    last: dict[str, Any] = {"index": 0, "finish_reason": "stop", **({"delta": {}} if is_chat else {"text": ""})}
    stats = {"time_to_first_token": 0.5, "total_draft_tokens_count": 8, "accepted_draft_tokens_count": 6}
    yield b"data: " + json.dumps({"choices": [last], "stats": stats}).encode() + b"\n\n"
    usage = {"prompt_tokens": 4, "completion_tokens": len(state.story)}
    yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
