"""Finding out what answers at an address: which engine, with which models, and how long a text they take."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from core.errors import EngineBusyError, EngineRefusedError, EngineUnreachableError, ModelNotFoundError
from core.remote.address import Address
from core.remote.backends import LLAMA_CPP, LLAMA_CPP_PYTHON, OTHER, SERVE, SGLANG, VLLM, Kind
from core.remote.client import EngineClient
from core.remote.http_stream import ResponseHead
from resources.language import tr

_KIND_BY_OWNER = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMA_CPP}
"""`owned_by` in an engine's list of models."""
_KIND_BY_PATHS = {
    frozenset({"/load_model", "/reset"}): SERVE,
    frozenset({"/extras/tokenize", "/extras/detokenize"}): LLAMA_CPP_PYTHON,
}
"""Paths that it alone has."""


_MAX_MODELS = 10_000
_MAX_NAME_LENGTH = 512
_MAX_COUNT = 2**31


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One model of an engine."""

    name: str
    context: int | None = None
    """Longest text in tokens; None where the engine does not tell."""
    vocabulary: int = 0
    """Tokens it knows; 0 where the engine does not tell."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What answers at an address."""

    kind: Kind
    models: tuple[ServedModel, ...] = ()


def probe(address: Address, cancel: threading.Event | None = None) -> EngineInfo:
    """Ask the engine what it is and has. Raises EngineError."""
    return identify_engine(EngineClient(address), cancel or threading.Event())


def identify_engine(client: EngineClient, cancel: threading.Event) -> EngineInfo:
    """The same with a client that is there. Raises EngineError, StoppedError."""
    try:
        listed, head = client.get(f"{client.address.path}/models", cancel)
    except EngineRefusedError:  # some have no list: they may still answer
        return EngineInfo(_kind_from_paths(client, cancel))
    except EngineBusyError:
        if _kind_from_paths(client, cancel) is SERVE:  # its list fails where nothing was ever downloaded
            return EngineInfo(SERVE)
        raise
    cards = [card for card in _model_cards(listed)[:_MAX_MODELS] if _is_name(card.get("id"))]
    return EngineInfo(_detect_kind(client, cards, head, cancel), tuple(map(_served_model, cards)))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME_LENGTH


def _model_cards(listed: object) -> Sequence[dict[str, object]]:
    found = listed.get("data") if isinstance(listed, dict) else None
    return [card for card in found if isinstance(card, dict)] if isinstance(found, list) else []


def _detect_kind(
    client: EngineClient, cards: Sequence[dict[str, object]], head: ResponseHead, cancel: threading.Event
) -> Kind:
    owners = {str(card.get("owned_by", "")).lower() for card in cards}
    for owner, kind in _KIND_BY_OWNER.items():
        if owner in owners:
            return kind
    server = head.headers.get("server", "").lower()
    if "llama.cpp" in server:
        return LLAMA_CPP
    return _kind_from_paths(client, cancel) if "uvicorn" in server else OTHER


def _kind_from_paths(client: EngineClient, cancel: threading.Event) -> Kind:
    """Some sign nothing, but describe their own paths, of which some are theirs alone."""
    try:
        described, _head = client.get(f"{client.address.root}/openapi.json", cancel)
    except (EngineRefusedError, EngineUnreachableError):
        return OTHER
    paths = described.get("paths") if isinstance(described, dict) else None
    has = set(paths) if isinstance(paths, dict) else set()
    return next((kind for own, kind in _KIND_BY_PATHS.items() if own <= has), OTHER)


def _served_model(card: dict[str, object]) -> ServedModel:
    meta = card.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    sizes = (card.get("max_model_len"), meta.get("n_ctx"), meta.get("n_ctx_train"), card.get("context_length"))
    context = next((size for size in sizes if _is_count(size)), None)
    vocabulary = meta.get("n_vocab")
    return ServedModel(str(card["id"]), context, vocabulary if _is_count(vocabulary) else 0)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MAX_COUNT


def select_model(engine: EngineInfo, address: Address) -> ServedModel:
    """The model that the address means. Raises ModelNotFoundError."""
    names = [model.name for model in engine.models]
    if not address.model and len(names) == 1:
        return engine.models[0]
    known = next((model for model in engine.models if model.name == address.model), None)
    if known is not None:
        return known
    if address.model and (not names or engine.kind is SERVE or engine.kind is LLAMA_CPP):
        return ServedModel(address.model)  # it loads what it is asked for, or answers to any name
    raise _unknown_model_error(address, names)


def _unknown_model_error(address: Address, names: Sequence[str]) -> ModelNotFoundError:
    if not address.model:
        several = tr("The address names no model, and {place} has several.")
        cause = (several if names else tr("The address names no model, and {place} lists none.")).format(
            place=address.place
        )
    else:
        cause = tr("{place} has no model “{name}”.").format(place=address.place, name=address.model)
    near = difflib.get_close_matches(address.model, names, 3, 0.3) or names[:5]
    listed = ", ".join(near)
    remedy = tr("Write its name behind #. It has: {names}.") if listed else tr("Write its name behind #.")
    return ModelNotFoundError(cause, remedy.format(names=listed))
