"""Ollama and LM Studio on this computer: found, listed and used through their own interfaces."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from decodescope import core
from decodescope.core import remote
from decodescope.core.errors import EngineCutError, EngineRefusedError, EngineReplyError, ModelNotFoundError
from decodescope.core.events import Notice, TokenChosen
from decodescope.core.remote import client, engines, local_engines
from decodescope.core.remote.engines.base import EngineKind
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import connect
from tests import fake_local_engines
from tests.core.remote_requests import chosen_tokens
from tests.core.test_remote_hostile_servers import CHUNKED, OK, RawServer, answering
from tests.fake_local_engines import LocalServer

STORY = "".join(piece for piece, _likely in fake_local_engines.STORY)
PROMPT = "Once upon a time"
CHAT = ({"role": "user", "content": "Tell me a story."},)


@pytest.fixture
def ollama() -> Iterator[LocalServer]:
    with fake_local_engines.running("ollama") as server:
        yield server


@pytest.fixture
def lm_studio() -> Iterator[LocalServer]:
    with fake_local_engines.running("lm_studio") as server:
        yield server


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the kinds of engines have these ports of this computer."""
    monkeypatch.delenv("OLLAMA_HOST", raising=False)

    def move(**chosen: int) -> None:
        moved: dict[str, EngineKind] = {
            name: replace(kind, local_port=chosen.get(name, 9) if kind.local_port else 0)  # nothing listens at port 9
            for name, kind in engines.registry.items()
        }
        monkeypatch.setattr(engines.registry, "_entries", moved)

    move()
    return move


def found_names() -> dict[str, list[str]]:
    return {engine.title: [model.name for model in engine.models] for engine in remote.find_local_engines()}


def notices(result: core.Result) -> str:
    return " ".join(event.message for event in result.events if isinstance(event, Notice))


def test_running_engines_are_found_with_their_text_models(
    ollama: LocalServer, lm_studio: LocalServer, ports: Callable[..., None]
) -> None:
    assert remote.find_local_engines() == ()
    ports(ollama=ollama.port, lm_studio=lm_studio.port)
    assert found_names() == {
        "Ollama": ["tale:1b", "story:latest", "huge:cloud"], "LM Studio": ["someone/tale-3b"],
    }  # fmt: skip
    first, second = remote.find_local_engines()
    assert first.models[0].facts == ("llama", "1.2B", "Q8_0", "1.2 GiB")
    assert [model.host for model in first.models] == ["", "", "https://ollama.com:443"]
    assert "384 B" not in first.models[2].facts
    assert [model.context for model in first.models] == [4096, None, None]
    assert second.models[0].facts == ("qwen2", "3B", "Q4_K_M", "1.8 GiB")
    assert second.models[0].context == 4096
    assert core.load(first.name_of(first.models[0])).name == "tale:1b"
    assert set(ollama.keys) == set(lm_studio.keys) == {""}


def test_a_search_sends_no_key_that_was_not_entered_for_this_engine(
    lm_studio: LocalServer, ports: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_API_KEY", "sk-other")
    lm_studio.key = "lm-secret"
    ports(lm_studio=lm_studio.port)
    (engine,) = remote.find_local_engines()
    assert engine.models == ()
    assert "401" in engine.problem
    assert "Connect to an engine" in engine.problem
    assert set(lm_studio.keys) == {""}
    remote.keep_key(engine.address, "lm-secret")
    try:
        assert found_names() == {"LM Studio": ["someone/tale-3b"]}
    finally:
        remote.forget_key(engine.address)


def test_models_of_an_older_lm_studio_are_listed(ports: Callable[..., None]) -> None:
    with fake_local_engines.running("lm_studio", is_old=True) as server:
        ports(lm_studio=server.port)
        (engine,) = remote.find_local_engines()
        assert [(model.name, model.context, model.facts) for model in engine.models] == [
            ("tale-3b", 8192, ("qwen2", "Q4_K_M"))
        ]
        idle = {"type": "llm", "id": "idle", "state": "not-loaded", "compatibility_type": "gguf"}
        server.bodies["/api/v0/models"] = {"data": [idle | {"loaded_context_length": 8192}]}
        assert [model.context for model in remote.find_local_engines()[0].models] == [None], (
            "it may be loaded with less"
        )


@pytest.mark.parametrize(
    ("configured", "place"),
    [
        ("", "127.0.0.1:11434"),
        ("0.0.0.0", "127.0.0.1:11434"),
        ("0.0.0.0:7000", "127.0.0.1:7000"),
        (":7000", "127.0.0.1:7000"),
        ("localhost", "localhost:11434"),
        ("http://127.0.0.1:7000/", "127.0.0.1:7000"),
        ("[::1]:7000", "[::1]:7000"),
        ("192.168.1.7:11434", "127.0.0.1:11434"),
        ("https://ollama.example", "127.0.0.1:11434"),
        ("no address", "127.0.0.1:11434"),
        ("127.0.0.1:99999", "127.0.0.1:11434"),
        ('"127.0.0.1:7000"', "127.0.0.1:7000"),
        (" '0.0.0.0' ", "127.0.0.1:11434"),
        ("http://localhost", "localhost"),
        ("http://localhost:99999", "localhost"),
        ("http://127.0.0.1:7000/path/v1", "127.0.0.1:7000"),
        ("127.0.0.1/path", "127.0.0.1:11434"),
        ("::1", "[::1]:11434"),
        ("[::1]", "[::1]:11434"),
        ("[::]:7000", "127.0.0.1:7000"),
        ("localhost:", "localhost:11434"),
        ("http://:7000", "127.0.0.1:7000"),
    ],
)
def test_the_variable_of_ollama_is_followed_on_this_computer_only(
    configured: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", configured)
    assert local_engines.local_address(engines.registry["ollama"]).place == place


def test_ollama_receives_the_raw_text_and_returns_probabilities(ollama: LocalServer) -> None:
    model = core.load(ollama.name("tale:1b"))
    assert (model.kind.name, model.context, model.vocabulary) == ("ollama", 4096, 49_152)
    config = {"max_new_tokens": 5, "do_sample": True, "top_k": 3, "repetition_penalty": 1.2, "stop_strings": ["!"]}
    result = core.run(model, core.Request(PROMPT, config, top_n=2, seed=2**31 + 5))
    path, body = ollama.requests[-1]
    assert path == "/api/generate"
    assert (body["raw"], body["prompt"], body["logprobs"], body["top_logprobs"]) == (True, PROMPT, True, 2)
    assert (body["truncate"], body["shift"]) == (False, False)
    assert body["options"] == {
        "num_predict": 5, "temperature": 1.0, "top_p": 1.0, "top_k": 3, "min_p": 0.0, "repeat_penalty": 1.2,
        "stop": ["!"], "seed": 5, "repeat_last_n": -1,
    }  # fmt: skip
    assert result.texts == [STORY]
    tokens = chosen_tokens(result.events)
    assert [token.text for token in tokens] == [piece for piece, _likely in fake_local_engines.STORY]
    assert [round(token.raw_probability, 6) for token in tokens] == [0.7, 0.9, 0.6, 0.5, 0.8]
    assert all(math.isnan(token.probability) for token in tokens), "settings were active, and Ollama reports raw ones"
    assert [one.text for one in tokens[0].alternatives] == [" there", " a"]
    assert result.metrics.prompt_tokens == 4
    assert result.metrics.prefill_tokens_per_second == pytest.approx(200)
    assert result.metrics.new_tokens == 5, "the end token that Ollama counts has no text"


def test_greedy_decoding_of_a_chat_uses_the_chat_endpoint(ollama: LocalServer) -> None:
    result = core.run(core.load(ollama.name("story")), core.Request(CHAT, {"max_new_tokens": 3}, top_n=5))
    path, body = ollama.requests[-1]
    assert (path, body["model"], body["messages"]) == ("/api/chat", "story:latest", list(CHAT))
    assert "raw" not in body
    assert body["options"]["temperature"] == 0.0
    assert result.texts == [" there was a"]
    assert [len(token.alternatives) for token in chosen_tokens(result.events)] == [2, 2, 2]


def test_reasoning_is_part_of_the_text(ollama: LocalServer) -> None:
    lines = [
        {"message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": False},
        {"message": {"role": "assistant", "content": "Yes"}, "done": False},
        {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ]
    ollama.bodies["/api/chat"] = b"\n".join(json.dumps(line).encode() for line in lines)
    assert core.run(core.load(ollama.name("tale:1b")), core.Request(CHAT)).texts == ["Hm.Yes"]


def test_a_schema_is_sent_as_the_format(ollama: LocalServer) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    core.run(core.load(ollama.name("tale:1b")), core.Request(PROMPT, options={"grammar": {"json_schema": schema}}))
    assert ollama.requests[-1][1]["format"]["properties"] == schema["properties"]


def test_old_ollama_is_used_without_probabilities() -> None:
    with fake_local_engines.running("ollama", version="0.12.10") as server:
        model = core.load(server.name("tale:1b"))
        for prompt in (PROMPT, CHAT):
            result = core.run(model, core.Request(prompt))
            assert result.texts == [STORY]
            assert "logprobs" not in server.requests[-1][1]
            assert "Version 0.12.11" in notices(result)


@pytest.mark.parametrize(
    ("version", "reports"), [("0.12.11", True), ("0.12.9", False), ("1.0.0-rc2", True), ("0.0.0", True), ("dev", True)]
)
def test_versions_are_compared_by_number(version: str, reports: bool) -> None:
    with fake_local_engines.running("ollama", version=version) as server:
        assert core.load(server.name("tale:1b")).reports_probabilities is reports


def test_lm_studio_is_known_by_name_and_reports_text_only(lm_studio: LocalServer) -> None:
    model = core.load(lm_studio.name("someone/tale-3b"))
    assert (model.kind.title, model.context) == ("LM Studio", 4096)
    for prompt, path in ((PROMPT, "/v1/completions"), (CHAT, "/v1/chat/completions")):
        result = core.run(model, core.Request(prompt, {"repetition_penalty": 1.3}, top_n=5))
        assert lm_studio.requests[-1][0] == path
        assert lm_studio.requests[-1][1]["repeat_penalty"] == 1.3
        assert "logprobs" not in lm_studio.requests[-1][1]
        assert result.texts == [STORY]
        assert all(math.isnan(token.raw_probability) for token in chosen_tokens(result.events))
        assert "LM Studio reports only text" in notices(result)
        assert result.metrics.acceptance_rate == 0.75
        assert result.metrics.prefill_tokens_per_second == pytest.approx(8)


def test_missing_model_is_named_in_the_error(ollama: LocalServer) -> None:
    with pytest.raises(ModelNotFoundError, match=r"no model “none”"):
        core.load(ollama.name("none"))
    model = core.load(ollama.name("tale:1b"))
    model.served = replace(model.served, name="gone:1b")
    with pytest.raises(EngineRefusedError, match="model 'gone:1b' not found"):
        core.run(model, core.Request(PROMPT))
    assert ollama.paths[-1] == "/api/generate", "the compatible endpoint applies a template: it is no substitute"


def test_failure_during_a_run_keeps_the_text(ollama: LocalServer) -> None:
    ollama.fails_after = 2
    events = []
    with pytest.raises(EngineCutError, match="model runner has unexpectedly stopped"):
        events.extend(core.stream(core.load(ollama.name("tale:1b")), core.Request(PROMPT)))


def test_stop_takes_effect_while_ollama_is_silent(ollama: LocalServer) -> None:
    model, cancel = core.load(ollama.name("tale:1b")), threading.Event()
    ollama.held.clear()
    events = []
    for event in core.stream(model, core.Request(PROMPT), cancel):
        events.append(event)
        if isinstance(event, TokenChosen):
            cancel.set()  # Ollama sends nothing more until it is released
    assert events[-1].reason == "stopped"
    assert events[-1].texts == (" there",)
    ollama.held.set()
    assert ollama.left.wait(10)


WRONG_TYPES = (
    {"models": None}, {"models": "tale"}, [], "x", 7, {"models": [None, 7, "x", {"name": 5}, {"name": ""}]},
    {"models": [{"name": "a" * 1000}, {"name": "\x1b[31mred"}, {"name": "two\nlines"}, {"name": "\u202egnp"}]},
    {"models": [{"name": "\ud800"}, {"name": "\0"}, {"name": " \t"}]}, b"<html>It works!</html>",
    {"models": [{"name": "tale", "details": 5, "capabilities": 7, "size": "big", "remote_host": []}]},
    {"models": [{"name": "tale", "details": {"family": [1], "parameter_size": {}, "quantization_level": "x" * 9999},
                 "size": -1}]},
)  # fmt: skip


@pytest.mark.parametrize("reply", WRONG_TYPES, ids=range(len(WRONG_TYPES)))
def test_lists_with_wrong_types_are_errors_or_empty(
    reply: object, ollama: LocalServer, ports: Callable[..., None]
) -> None:
    ollama.bodies["/api/tags"] = reply
    ports(ollama=ollama.port)
    (engine,) = remote.find_local_engines()
    assert [model.name for model in engine.models] in ([], ["tale"])
    assert bool(engine.problem) == (not isinstance(reply, dict) or not isinstance(reply["models"], list))
    assert all(len(fact) <= 41 for model in engine.models for fact in model.facts)


@pytest.mark.parametrize("name", ["my tale:1b", "50%", "a%20b", "/models/My Tale", "童话:1b", "a#b?c"])
def test_every_printable_name_can_be_loaded(name: str, ollama: LocalServer, ports: Callable[..., None]) -> None:
    ollama.bodies["/api/tags"] = {"models": [{"name": name}]}
    ports(ollama=ollama.port)
    (engine,) = remote.find_local_engines()
    (model,) = engine.models
    assert remote.parse(engine.name_of(model)).model == name
    assert core.load(engine.name_of(model)).name == name


@pytest.mark.parametrize("reply", [b"<html>", [], {"model_info": {"general.architecture": []}}, {"a": "b" * 5000}])
def test_unreadable_model_details_leave_the_model_usable(
    reply: object, ollama: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MAX_RESPONSE_BYTES", 4000)
    ollama.bodies["/api/show"] = reply
    assert core.run(core.load(ollama.name("tale:1b")), core.Request(PROMPT)).texts == [STORY]


@pytest.mark.parametrize("reply", [[], {"models": 5}, {"models": [7]}, {"models": [{"type": "llm"}]}], ids=str)
def test_another_program_at_the_port_is_not_listed(
    reply: object, lm_studio: LocalServer, ports: Callable[..., None]
) -> None:
    lm_studio.bodies |= {"/api/v1/models": reply, "/api/v0/models": {"data": [{"type": "llm", "id": "other"}]}}
    ports(lm_studio=lm_studio.port, ollama=lm_studio.port)
    assert found_names() in ({}, {"LM Studio": []})


SERVERS = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n",),
    "a redirect": (b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",),
    "an error": (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",),
    "half a body": (OK + b'Content-Length: 50\r\n\r\n{"version"',),
    "no JSON": (OK + b"\r\n<html>",),
    "deep": (OK + b"\r\n" + b"[" * 100_000,),
    "nothing": (b"",),
}


@pytest.mark.parametrize("pieces", SERVERS.values(), ids=SERVERS)
def test_servers_that_break_http_are_reported_or_skipped(pieces: tuple[bytes, ...], ports: Callable[..., None]) -> None:
    with answering(*pieces) as server:
        ports(ollama=_port(server), lm_studio=_port(server))
        for engine in remote.find_local_engines():
            assert engine.models == ()
            assert engine.problem.count(".") >= 2, engine.problem


@pytest.mark.parametrize("endless", [b"", b"400\r\n" + b" " * 1024 + b"\r\n"], ids=["silent", "endless"])
def test_slow_and_endless_servers_are_given_up(
    endless: bytes, ports: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_engines, "_MAX_SECONDS", 0.3)
    monkeypatch.setattr(local_engines, "_TIMEOUTS", Timeouts(1.0, 20, 20, max_attempts=1))
    with answering(CHUNKED, endless=endless, is_silent_after=True) as server:
        ports(ollama=_port(server))
        (engine,) = remote.find_local_engines()
        assert "does not answer completely" in engine.problem
        assert server.is_left.wait(10)


def test_cancelled_search_ends_at_once(ports: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engines, "_MAX_SECONDS", 60.0)
    monkeypatch.setattr(local_engines, "_TIMEOUTS", Timeouts(1.0, 60, 60, max_attempts=1))
    cancel = threading.Event()
    with answering(CHUNKED, is_silent_after=True) as server:
        ports(ollama=_port(server))
        threading.Thread(target=lambda: server.has_answered.wait(10) and cancel.set()).start()
        assert remote.find_local_engines(cancel) == ()
        assert server.is_left.wait(10)


WRONG_LINES = {
    "no JSON": b"{no JSON\n", "server-sent events": b'data: {"done": false}\n', "a list": b"[]\n", "a number": b"7\n",
    "no done": b'{"response": "x"}\n', "done as text": b'{"response": "x", "done": "no"}\n',
    "a message of a wrong type": b'{"message": 5, "done": false}\n',
    "no end": b'{"response": "a", "done": false}\n', "nothing": b"",
}  # fmt: skip
ODD_LINES = {
    "invalid bytes": b'{"response": "\xff", "done": true}\n',
    "logprobs of wrong types": b'{"response": "a", "done": true, "logprobs": [5, {"token": 7, "logprob": "x"}]}\n',
    "logprobs in no list": b'{"response": "a", "done": true, "logprobs": {"a": 1}}\n',
    "a huge number": b'{"response": "a", "done": true, "prompt_eval_duration": 1e999, "eval_count": -5}\n',
}


@pytest.mark.parametrize("line", WRONG_LINES.values(), ids=WRONG_LINES)
def test_malformed_messages_raise_an_error(line: bytes, ollama: LocalServer) -> None:
    ollama.bodies["/api/generate"] = line
    with pytest.raises((EngineReplyError, EngineCutError)) as error:
        core.run(core.load(ollama.name("tale:1b")), core.Request(PROMPT))
    assert error.value.remedy


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_invalid_optional_values_keep_the_text(line: bytes, ollama: LocalServer) -> None:
    ollama.bodies["/api/generate"] = line
    assert core.run(core.load(ollama.name("tale:1b")), core.Request(PROMPT)).texts in (["a"], ["\ufffd"])


def test_endless_text_is_cut(ollama: LocalServer) -> None:
    ollama.bodies["/api/generate"] = b'{"response": "a", "done": false}\n' * 5000
    result = core.run(core.load(ollama.name("tale:1b")), core.Request(PROMPT, {"max_new_tokens": 3}))
    assert len(result.texts[0]) < 2000


def _port(server: RawServer) -> int:
    return int(server.url.rpartition(":")[2])


def test_other_engines_are_still_recognized_first(ollama: LocalServer) -> None:
    """Native interfaces are queried only if nothing else identifies the engine."""
    assert connect(ollama.name("tale:1b")).kind.name == "ollama"
    assert ollama.paths[0] == "/v1/models"
