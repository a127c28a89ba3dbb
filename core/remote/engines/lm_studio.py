"""LM Studio. Its own API lists the models on the disk with their formats; texts come from the OpenAI-compatible one,
which reports no probabilities. Names and meanings are those of LM Studio's documentation of `/api/v1` and `/api/v0`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from decodescope.core.errors import EngineRefusedError, EngineReplyError
from decodescope.core.explain.words import size
from decodescope.core.remote.client import EngineClient
from decodescope.core.remote.engines.base import EngineKind, EngineListing, EngineModel, Message
from decodescope.core.remote.engines.formats import (
    GRAMMAR,
    OPENAI_SETTINGS,
    USAGE,
    is_model_name,
    positive_count,
    response_format,
    short_text,
)
from decodescope.core.remote.responses import ResponseUsage, valid_count

_MAX_MODELS = 10_000
_EMBEDDINGS = ("embedding", "embeddings")
_LOADED = "loaded"
_MAX_SECONDS = 2**31


def own_api(client: EngineClient, cancel: threading.Event) -> EngineListing | None:
    """Return LM Studio's models, from version 0.4 on with their sizes; None if another program answers. Raises
    EngineError, CancelledError.
    """
    root = client.address.root
    cards = _cards(client, f"{root}/api/v1/models", "models", "key", cancel)
    if cards is not None:
        return EngineListing(tuple(_served_model(card) for card in cards))
    older = _cards(client, f"{root}/api/v0/models", "data", "id", cancel)
    if older is None or not all("compatibility_type" in card for card in older):
        return None
    return EngineListing(tuple(_older_model(card) for card in older))


def _cards(
    client: EngineClient, path: str, field: str, name: str, cancel: threading.Event
) -> Sequence[Mapping[str, object]] | None:
    """Return the models in a reply that generate text; None if it is no list of models."""
    try:
        reply, _head = client.get(path, cancel)
    except (EngineRefusedError, EngineReplyError):
        return None
    cards = reply.get(field) if isinstance(reply, dict) else None
    if not isinstance(cards, list) or not all(isinstance(card, dict) and "type" in card for card in cards):
        return None
    return [card for card in cards[:_MAX_MODELS] if is_model_name(card.get(name)) and card["type"] not in _EMBEDDINGS]


def _served_model(card: Mapping[str, object]) -> EngineModel:
    quantization = card.get("quantization")
    format_name = quantization.get("name") if isinstance(quantization, dict) else None
    bytes_on_disk = positive_count(card.get("size_bytes"))
    facts = [short_text(card.get("architecture")), short_text(card.get("params_string")), short_text(format_name)]
    facts.append(size(bytes_on_disk) if bytes_on_disk else "")
    return EngineModel(str(card["key"]), _loaded_context(card), facts=tuple(filter(None, facts)))


def _loaded_context(card: Mapping[str, object]) -> int | None:
    """Return the context length with which a model is loaded; None if it is not loaded."""
    instances = card.get("loaded_instances")
    for instance in instances if isinstance(instances, list) else ():
        config = instance.get("config") if isinstance(instance, dict) else None
        if isinstance(config, dict) and (context := positive_count(config.get("context_length"))):
            return context
    return None


def _older_model(card: Mapping[str, object]) -> EngineModel:
    facts = (short_text(card.get("arch")), short_text(card.get("quantization")))
    context = positive_count(card.get("loaded_context_length")) if card.get("state") == _LOADED else None
    return EngineModel(str(card["id"]), context, facts=tuple(filter(None, facts)))


def read_usage(usage: ResponseUsage, message: Message) -> None:
    """Read the time of the prompt and the numbers of drafted and accepted tokens."""
    stats = message.get("stats")
    if not isinstance(stats, dict):
        return
    seconds = stats.get("time_to_first_token")
    if isinstance(seconds, (int, float)) and 0 < seconds < _MAX_SECONDS:
        usage.prompt_seconds = float(seconds)
    usage.drafted = valid_count(stats.get("total_draft_tokens_count"), usage.drafted)
    usage.accepted = valid_count(stats.get("accepted_draft_tokens_count"), usage.accepted)


ENGINE = EngineKind(
    "lm_studio",
    "LM Studio",
    {**OPENAI_SETTINGS, "top_k": "top_k", "repetition_penalty": "repeat_penalty", **GRAMMAR},
    USAGE,
    max_seed=2**31,
    own_api=own_api,
    local_port=1234,
    chat_grammars={"json_schema": response_format},
    read_usage=read_usage,
    order=36,
)
