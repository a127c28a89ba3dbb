"""Another machine with an engine on it, on this one: replies in the shapes of vLLM, SGLang, llama.cpp's server,
transformers serve and OpenAI, written by hand from their published schemas, with every fault one can have."""

from __future__ import annotations

import copy
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests import fake_generate, fake_tokenizer
from tests.local_server import RequestHandler, serving

STORY = (
    (" there", 0.7, {" there": 0.7, " a": 0.2, " in": 0.05}),
    (" was", 0.9, {" was": 0.9, " lived": 0.08, " is": 0.01}),
    (" a", 0.3, {" the": 0.5, " a": 0.3, " an": 0.1}),
    (" fox", 0.02, {" dog": 0.4, " cat": 0.3, " girl": 0.1}),
    (".", 0.6, {".": 0.6, ",": 0.3, " who": 0.05}),
)
"""Piece, probability, likeliest: as sampling may choose. Without sampling, it writes the likeliest."""


@dataclass
class FakeEngine:
    """Kind and story of the engine, its faults, and the requests received."""

    kind: str = "vllm"
    models: tuple[str, ...] = ("tale-7b",)
    story: tuple[tuple[str, float, dict[str, float]], ...] = STORY
    key: str = ""
    """Required API key; empty for none."""
    without_logits: bool = False
    """As llama-cpp-python's server without `logits_all`: it fails if probabilities are requested."""
    own_face: str = "whole"
    """How SGLang's own face tells: everything from the beginning with each message (whole), what is new (pieces), text
    as a whole and lists in pieces (both); or it has none (none), answers what is none (garbage), fails (fault), cut: it
    closes the connection before its first word."""
    refusals: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    """Status, headers and body of the next answers to a POST."""
    dies_after: int | None = None
    """Tokens after which the connection ends."""
    fails_after: int | None = None
    """Number of tokens after which it reports a failure."""
    garbage_after: int | None = None
    cut_bytes: bool = False
    """Every byte is sent by itself."""
    bend: Callable[[Any], object] = copy.copy
    """Replacement for the response; bytes are sent unchanged."""
    pause: float = 0.0
    """Seconds before each token."""
    held: threading.Event = field(default_factory=threading.Event)
    """The second token comes once it is set."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection early."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of all POST requests for text."""
    tokenizer: str = "bytes"
    """How its vocabulary is written: as byte-level BPE has it (bytes), as SentencePiece has it (pieces), in small
    letters (lower); none: it has no such face; garbage: it answers something else, broken: no JSON, cut: half of it."""
    read: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Paths and bodies of all POST requests for tokens."""
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    address: str = ""

    def name(self, model: str = "") -> str:
        """Return the address to pass to `core.load`."""
        return f"{self.address}/v1#{model or self.models[0]}"

    @property
    def sent(self) -> dict[str, Any]:
        """The last body."""
        return self.asked[-1]


@contextmanager
def running(kind: str = "vllm", **more: Any) -> Iterator[FakeEngine]:
    """A machine that answers until the end of the block."""
    machine = FakeEngine(kind, **more)
    with serving(type("Answer", (_EngineHandler,), {"machine": machine}), machine.held) as machine.address:
        yield machine


_OWN_PATHS = {
    "transformers": ("/load_model", "/reset"),
    "llama-cpp-python": ("/extras/tokenize", "/extras/tokenize/count", "/extras/detokenize"),
}


_NO_LOGITS = "logprobs is not supported for models created with logits_all=False"


class _EngineHandler(RequestHandler):
    machine: FakeEngine
    protocol_version = "HTTP/1.1"

    def version_string(self) -> str:
        return {"llama.cpp": "llama.cpp", "other": "nginx"}.get(self.machine.kind, "uvicorn")

    def do_GET(self) -> None:
        machine = self.machine
        machine.paths.append(self.path)
        if self._refuses_key():
            return
        if self.path == "/v1/models":
            self._json(200, {"object": "list", "data": [self._card(name) for name in machine.models]})
        elif self.path == "/openapi.json" and machine.kind in _OWN_PATHS:
            self._json(200, {"paths": {path: {} for path in (*_OWN_PATHS[machine.kind], "/v1/models")}})
        else:
            self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        machine = self.machine
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        machine.paths.append(self.path)
        is_read = self.path in ("/tokenize", "/detokenize", "/apply-template")
        (machine.read if is_read else machine.asked).append((self.path, body) if is_read else body)
        if self._refuses_key():
            return
        if is_read:
            self._read(body)
        elif machine.refusals:
            status, headers, words = machine.refusals.pop(0)
            self._bytes(status, words.encode(), headers)
        elif machine.kind == "transformers" and {"logprobs", "top_p"} & set(body):
            self._json(422, {"detail": "Unexpected fields in the request"})
        elif machine.without_logits and body.get("logprobs") is not None:
            self._json(500, {"error": {"message": _NO_LOGITS, "type": "internal_server_error", "code": None}})
        elif self.path == "/generate" and (machine.kind != "sglang" or machine.own_face == "none"):
            self._json(404, {"detail": "Not Found"})
        elif self.path == "/generate" and machine.own_face == "fault":
            self._json(500, {"error": {"message": "SamplingParams got an unexpected keyword argument"}})
        elif body.get("stream"):
            self._stream(body)
        else:
            self._json(200, scored(machine, body))

    def _read(self, body: dict[str, Any]) -> None:
        machine = self.machine
        if machine.tokenizer == "none" or machine.kind not in ("vllm", "llama.cpp"):
            self._json(404, {"detail": "Not Found"})
        elif machine.tokenizer == "broken":
            self._bytes(200, b"<html>", {})
        elif machine.tokenizer == "cut":
            self._bytes(200, b'{"tokens": [1, 2', {"Content-Length": "400"})
            self.close_connection = True
        else:
            self._json(200, fake_tokenizer.answer(machine.kind, machine.tokenizer, self.path, body))

    def _refuses_key(self) -> bool:
        reported = self.headers.get("Authorization", "")
        self.machine.keys.append(reported)
        if not self.machine.key or reported == f"Bearer {self.machine.key}":
            return False
        self._json(401, {"error": {"message": f"Incorrect API key provided: {reported.removeprefix('Bearer ')}"}})
        return True

    def _card(self, name: str) -> dict[str, Any]:
        owners = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "transformers": "somebody",
                  "llama-cpp-python": "me"}  # fmt: skip
        card: dict[str, Any] = {"id": name, "object": "model", "owned_by": owners.get(self.machine.kind, "openai")}
        if self.machine.kind in ("vllm", "sglang"):
            card["max_model_len"] = 4096
        if self.machine.kind == "llama.cpp":
            card["meta"] = {"n_vocab": 32_000, "n_ctx_train": 2048}
        return card

    def _json(self, status: int, value: Any) -> None:
        self._bytes(status, _to_json(self.machine.bend(value)), {"Content-Type": "application/json"})

    def _bytes(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for line in _lines(self.machine, body):
                for piece in [bytes([one]) for one in line] if self.machine.cut_bytes else [line]:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except _ConnectionAborted:
            self.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            self.machine.left.set()
            self.close_connection = True


class _ConnectionAborted(Exception):
    pass


def _lines(machine: FakeEngine, body: dict[str, Any]) -> Iterator[bytes]:
    is_own = "sampling_params" in body
    if is_own:
        body = {**body, **body["sampling_params"], "max_tokens": body["sampling_params"]["max_new_tokens"]}
        if machine.own_face in ("garbage", "cut"):
            yield b"data: {no JSON\n\n" if machine.own_face == "garbage" else b""
            return
    story = [_likeliest(step) for step in machine.story] if _is_greedy(body) else machine.story
    count = min(len(story), body.get("max_tokens") or _in_json(body) or len(machine.story))
    for number in range(body.get("n") or 1):
        for place, (piece, share, top) in enumerate(story[:count]):
            _apply_fault(machine, place)
            if machine.fails_after == place:
                yield _line(machine, {"error": {"message": "the worker ran out of memory"}})
                return
            if machine.garbage_after == place:
                yield b"data: {this is no JSON\n\n"
            if is_own:
                yield _line(machine, fake_generate.message(machine.own_face, body, number, story[: place + 1], count))
            else:
                yield _line(machine, _message(machine, body, number, place, piece, share, top, count))
    if machine.kind != "transformers":
        if not is_own:
            yield _line(machine, _usage(machine, count))
        yield b"data: [DONE]\n\n"


def _is_greedy(body: dict[str, Any]) -> bool:
    return body.get("temperature") == 0 or '"do_sample": false' in body.get("generation_config", "")


def _likeliest(step: tuple[str, float, dict[str, float]]) -> tuple[str, float, dict[str, float]]:
    piece = max(step[2], key=lambda one: step[2][one])
    return piece, step[2][piece], step[2]


def _in_json(body: dict[str, Any]) -> int:
    return json.loads(body.get("generation_config", "{}")).get("max_new_tokens", 0)


def _apply_fault(machine: FakeEngine, place: int) -> None:
    if place == 1:
        machine.held.wait(30)
    time.sleep(machine.pause)
    if machine.dies_after == place:
        raise _ConnectionAborted


def _line(machine: FakeEngine, message: dict[str, Any]) -> bytes:
    return b"data: " + _to_json(machine.bend(message)) + b"\n\n"


def _to_json(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    # `surrogateescape`: a story may hold bytes that are half a character.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _message(
    machine: FakeEngine, body: dict[str, Any], number: int, place: int, piece: str, share: float, top: dict[str, float],
    count: int,
) -> dict[str, Any]:  # fmt: skip
    is_chat = "messages" in body
    choice: dict[str, Any] = {"index": number, "finish_reason": None}
    choice |= {"delta": {"content": piece}} if is_chat else {"text": piece}
    requested = body.get("top_logprobs") or body.get("n_probs") or (0 if is_chat else body.get("logprobs"))
    if requested and machine.kind != "transformers":
        in_chat = is_chat or machine.kind == "llama.cpp"
        choice["logprobs"] = (_chat_logs if in_chat else _logs)(
            piece, share, dict(list(top.items())[:requested]), place
        )
    if machine.kind == "vllm" and body.get("return_token_ids"):
        choice["token_ids"] = [100 + place]
    if place == count - 1:
        ended = count == len(machine.story)
        choice |= {"finish_reason": "stop" if ended else "length"}
        if ended and body.get("stop"):
            choice |= {"stop_reason" if machine.kind == "vllm" else "matched_stop": body["stop"][0]}
    message: dict[str, Any] = {"id": "cmpl-1", "model": body["model"], "choices": [choice]}
    if machine.kind == "vllm":
        message["usage"] = {"prompt_tokens": 4, "completion_tokens": place + 1}
    return message


def _logs(piece: str, share: float, top: dict[str, float], place: int) -> dict[str, Any]:
    likely = {one: math.log(value) for one, value in top.items()} | {piece: math.log(share)}
    return {"tokens": [piece], "token_logprobs": [math.log(share)], "top_logprobs": [likely], "text_offset": [place]}


def _chat_logs(piece: str, share: float, top: dict[str, float], place: int) -> dict[str, Any]:
    likely = [_chat_log(one, value, 200 + n) for n, (one, value) in enumerate(top.items())]
    return {"content": [_chat_log(piece, share, 100 + place) | {"top_logprobs": likely}]}


def _chat_log(piece: str, share: float, number: int) -> dict[str, Any]:
    data = list(piece.encode("utf-8", "surrogateescape"))
    return {"token": piece.encode("utf-8", "replace").decode(), "logprob": math.log(share), "bytes": data, "id": number}


def _usage(machine: FakeEngine, count: int) -> dict[str, Any]:
    message: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": count}}
    if machine.kind == "llama.cpp":
        message["timings"] = {
            "prompt_n": 4,
            "prompt_ms": 20.0,
            "predicted_n": count,
            "draft_n": 8,
            "draft_n_accepted": 6,
        }
    return message


def scored(machine: FakeEngine, body: dict[str, Any]) -> dict[str, Any]:
    """Return the prompt's log-probabilities: `echo`, without generating."""
    pieces = [f" {word}" if place else word for place, word in enumerate(str(body["prompt"]).split(" "))]
    logs = [None, *(math.log(0.5 / place) for place in range(1, len(pieces)))]
    tops = [None, *({piece: log, " other": math.log(0.4)} for piece, log in zip(pieces[1:], logs[1:], strict=True))]
    reported = {"tokens": pieces, "token_logprobs": logs, "top_logprobs": tops}
    return {"choices": [{"index": 0, "text": body["prompt"], "logprobs": reported, "finish_reason": "length"}],
            "usage": {"prompt_tokens": len(pieces), "completion_tokens": 0}}  # fmt: skip
