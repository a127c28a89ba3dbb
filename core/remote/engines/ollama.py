"""Ollama, through its own API: the compatible one applies the model's template to every text and ignores top-k, min-p
and the repetition penalty. Names and meanings are those of Ollama's API reference.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import replace

from decodescope.core.errors import EngineError, EngineRefusedError, EngineReplyError
from decodescope.core.explain.words import size
from decodescope.core.grammar.grammar_setting import schema_of
from decodescope.core.remote import http_stream
from decodescope.core.remote.client import EngineClient
from decodescope.core.remote.engines.base import Body, EngineKind, EngineListing, EngineModel, Message, NativeEndpoint
from decodescope.core.remote.engines.formats import GRAMMAR, is_model_name, positive_count, short_text
from decodescope.core.remote.responses import (
    ResponseUsage,
    StreamedToken,
    TextDelta,
    as_mapping,
    choice_tokens,
    valid_count,
)
from decodescope.resources.language import mark

_OPTIONS = {
    "max_new_tokens": "num_predict", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k",
    "min_p": "min_p", "repetition_penalty": "repeat_penalty", "stop_strings": "stop",
}  # fmt: skip
_OPTION_FIELDS = frozenset({*_OPTIONS.values(), "seed", "repeat_last_n"})
_WHOLE_TEXT = -1
"""The `repeat_last_n` at which the repetition penalty covers the whole text."""
_FIRST_WITH_PROBABILITIES = (0, 12, 11)
_UNKNOWN = (0, 0, 0)
"""The version that a build without one reports."""
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_COMPLETION = "completion"
_EMBEDDING_FAMILIES = frozenset({"bert", "nomic-bert"})
"""Families that only embed texts, for versions that report no capabilities."""
_MAX_MODELS = 10_000
_NANOSECONDS = 10**9


def own_api(client: EngineClient, cancel: threading.Event) -> EngineListing | None:
    """Return Ollama's models; None if another program answers. Raises EngineError, CancelledError."""
    root = client.address.root
    try:
        reply, _head = client.get(f"{root}/api/version", cancel)
    except (EngineRefusedError, EngineReplyError):
        return None
    version = reply.get("version") if isinstance(reply, dict) else None
    if not isinstance(version, str):
        return None
    listed, _head = client.get(f"{root}/api/tags", cancel)
    cards = listed.get("models") if isinstance(listed, dict) else None
    if not isinstance(cards, list):
        raise http_stream.unreadable_error(client.address.place, str(listed)[:200])
    contexts = _loaded_contexts(client, cancel)
    models = [_served_model(card, contexts) for card in cards[:_MAX_MODELS] if _generates_text(card)]
    return EngineListing(tuple(models), _reports_probabilities(version))


def _reports_probabilities(version: str) -> bool:
    """Return whether a version reports probabilities; one without a number is a build of the newest sources."""
    found = _VERSION.match(version)
    numbers = tuple(map(int, found.groups())) if found is not None else _UNKNOWN
    return numbers == _UNKNOWN or numbers >= _FIRST_WITH_PROBABILITIES


def _generates_text(card: object) -> bool:
    if not isinstance(card, dict) or not is_model_name(card.get("name")):
        return False
    capabilities = card.get("capabilities")
    if isinstance(capabilities, list):
        return _COMPLETION in capabilities
    return str(_details(card).get("family")) not in _EMBEDDING_FAMILIES


def _details(card: Mapping[str, object]) -> Mapping[str, object]:
    details = card.get("details")
    return details if isinstance(details, dict) else {}


def _served_model(card: Mapping[str, object], contexts: Mapping[str, int]) -> EngineModel:
    details, name = _details(card), str(card["name"])
    facts = [short_text(details.get(key)) for key in ("family", "parameter_size", "quantization_level")]
    host = short_text(card.get("remote_host"))
    bytes_on_disk = 0 if host else positive_count(card.get("size")) or 0  # a forwarded model has only its manifest
    facts.append(size(bytes_on_disk) if bytes_on_disk else "")
    return EngineModel(name, contexts.get(name), facts=tuple(filter(None, facts)), host=host)


def _loaded_contexts(client: EngineClient, cancel: threading.Event) -> Mapping[str, int]:
    """Return the context lengths of the models in memory: the engine chooses one when it loads a model."""
    try:
        reply, _head = client.get(f"{client.address.root}/api/ps", cancel)
    except EngineError:
        return {}
    cards = reply.get("models") if isinstance(reply, dict) else None
    found = {}
    for card in cards if isinstance(cards, list) else ():
        if isinstance(card, dict) and (context := positive_count(card.get("context_length"))):
            found[str(card.get("name"))] = context
    return found


def describe_model(client: EngineClient, model: EngineModel, cancel: threading.Event) -> EngineModel:
    """Return the model with the size of its vocabulary. Raises EngineError, CancelledError."""
    reply = client.post(f"{client.address.root}/api/show", {"model": model.name}, cancel)
    info = reply.get("model_info") if isinstance(reply, dict) else None
    if not isinstance(info, dict):
        return model
    vocabulary = positive_count(info.get(f"{info.get('general.architecture')}.vocab_size"))
    return replace(model, vocabulary_size=vocabulary or model.vocabulary_size)


def build_body(body: Message, is_sampling: bool, alternatives: int) -> Body:
    """Return the body of a `/api/generate` or `/api/chat` request. A text is sent without a template, and a prompt that
    is too long is refused instead of shortened.
    """
    options = {name: value for name, value in body.items() if name in _OPTION_FIELDS}
    own: Body = {"model": body["model"], "stream": True, "truncate": False, "shift": False}
    own |= {"messages": body["messages"]} if "messages" in body else {"prompt": body["prompt"], "raw": True}
    if "format" in body:
        own["format"] = body["format"]
    if alternatives:
        own |= {"logprobs": True, "top_logprobs": alternatives}
    return own | {"options": options | {"repeat_last_n": _WHOLE_TEXT}}


class OllamaResponse:
    """Reads the messages of one run, each with the text of a few tokens."""

    def __init__(self, machine: str) -> None:
        self._machine = machine

    @staticmethod
    def is_response(message: Mapping[str, object]) -> bool:
        """Return whether a message comes from Ollama's own API."""
        return isinstance(message.get("done"), bool)

    def delta(self, message: Message) -> TextDelta:
        """Return what a message adds. Reasoning before the answer is part of the text."""
        source = as_mapping(message["message"]) if "message" in message else message
        fields = (source.get(name) for name in ("content", "response", "thinking"))
        text = next((one for one in fields if isinstance(one, str) and one), "")
        tokens: tuple[StreamedToken, ...] = tuple(choice_tokens({"logprobs": {"content": message.get("logprobs")}}))
        finish = str(message.get("done_reason") or "stop") if message["done"] else ""
        return TextDelta(0, text, tokens, finish)


def read_usage(usage: ResponseUsage, message: Message) -> None:
    """Read the figures of the last message. Its number of tokens includes the end token, which has no text."""
    if message.get("done") is not True:
        return
    usage.prompt = valid_count(message.get("prompt_eval_count"), usage.prompt)
    nanoseconds = valid_count(message.get("prompt_eval_duration"), None)
    if nanoseconds:
        usage.prompt_seconds = nanoseconds / _NANOSECONDS


ENGINE = EngineKind(
    "ollama",
    "Ollama",
    {**_OPTIONS, **GRAMMAR},
    max_seed=2**31,
    alternatives=20,
    chat_alternatives=20,
    own_api=own_api,
    describe_model=describe_model,
    default_tag=":latest",
    local_port=11434,
    local_variable="OLLAMA_HOST",
    grammars={"json_schema": lambda content: {"format": schema_of(content)}},
    no_probabilities_notice=mark("This Ollama reports no probabilities. Version 0.12.11 and later ones do."),
    native=NativeEndpoint(
        "/api/generate", build_body, OllamaResponse, chat_path="/api/chat", is_required=True, has_json_lines=True
    ),
    read_usage=read_usage,
    order=34,
)
