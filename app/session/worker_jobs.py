"""Describes models and prepares runs: ids for phrases, trimmed chats, scored texts. Imports torch with the core."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from decodescope.app.state import conversation
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest, is_turns
from decodescope.core.errors import ParameterError
from decodescope.resources.depth import pick
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope import core
    from decodescope.core.events import Event


def describe(model: core.LoadedModel, request: LoadRequest) -> ModelInfo:
    """Return what the model is, where it runs, and which strategies and caches it does not support."""
    import torch

    from decodescope import core

    refused = {name: strategy.unsupported_reason(model) for name, strategy in core.strategies.registry.items()}
    caches = {name: cache.unsupported_reason(model) for name, cache in core.caches.registry.items()}
    return ModelInfo(
        name=request.model,
        title=model.name,
        device=str(model.device),
        dtype=model.weights,
        threads=torch.get_num_threads() if model.device.type == "cpu" else 0,
        note=_device_note(request.device, model.device.type),
        parameters=model.parameters,
        context=model.context,
        vocabulary=model.vocabulary,
        has_chat=model.tokenizer is not None and bool(model.tokenizer.chat_template),
        modalities=model.modalities,
        defaults=_model_defaults(model.generation_config),
        unsupported_strategies={name: why for name, why in refused.items() if why},
        unsupported_caches={name: why for name, why in caches.items() if why},
    )


def _device_note(requested: str, device: str) -> str:
    """Return why the automatic device is the CPU; empty otherwise."""
    if requested != "auto" or device != "cpu":
        return ""
    import torch

    if torch.cuda.is_available() or torch.backends.mps.is_available():
        return tr("these weights are for the CPU")
    if not _has_nvidia_driver():
        return tr("no GPU found")
    if torch.version.cuda is None:
        return pick(
            tr("the graphics card is not used"),
            tr("this installation does not use the GPU"),
            tr("no GPU supported by this torch version"),
        )
    return pick(
        tr("the graphics card is not used: its driver is too old or too new"),
        tr("GPU found, but its driver does not suit this installation"),
        tr("GPU found, but this torch version cannot use its driver"),
    )


_DRIVER_FOLDER = "/proc/driver/nvidia"


def _has_nvidia_driver() -> bool:
    """Return whether a driver for NVIDIA cards is installed."""
    return os.path.exists(_DRIVER_FOLDER) or shutil.which("nvidia-smi") is not None


def _model_defaults(config: GenerationConfig) -> Mapping[str, Any]:
    """Return the values set in the model's generation_config."""
    plain: dict[str, Any] = config.to_diff_dict()
    return {name: value for name, value in plain.items() if value is not None}


PHRASES = {"bad_words_ids"}
"""Settings that accept sequences of tokens."""


def with_phrase_ids(model: core.LoadedModel, request: RunRequest) -> RunRequest:
    """Return the request with ids for phrases, or the same object if there are none. Raises ParameterError."""
    ids = {name: _phrase_ids(name, value, model) for name, value in request.config.items()}
    return request if ids == request.config else replace(request, config=ids)


def _phrase_ids(name: str, value: Any, model: core.LoadedModel) -> Any:
    """Return the ids of phrases; other values unchanged. Raises ParameterError."""
    typed = isinstance(value, list | tuple) and bool(value) and all(isinstance(item, str) for item in value)
    if name == "stop_strings" or not typed:
        return value
    if model.tokenizer is None:
        raise ParameterError(
            tr("{name} contains text, but {model} has no tokenizer.").format(name=name, model=model.name),
            tr("Enter token ids."),
            name,
        )
    if name in PHRASES:  # words start with a space inside a sentence, and without one at the start of a line
        return _unique(ids for text in value for ids in model.spellings(text))
    pieces = [model.tokenizer.encode(text, add_special_tokens=False) for text in value]
    if long := [text for text, ids in zip(value, pieces, strict=True) if len(ids) != 1]:
        raise ParameterError(
            tr("{name} accepts single tokens; “{text}” is {count} tokens.").format(
                name=name, text=long[0], count=len(pieces[value.index(long[0])])
            ),
            tr("Enter token ids, or text that is a single token."), name,
        )  # fmt: skip
    return [ids[0] for ids in pieces]


def _unique(lists: Iterable[list[int]]) -> list[list[int]]:
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in lists) if ids]


def trim_chat(model: core.LoadedModel, request: RunRequest) -> RunRequest:
    """Return the request with the chat turns that fit the context, counted by the model's tokenizer."""
    if not is_turns(request.prompt) or not request.when_full or not has_bounded_context(model, request):
        return request
    remaining = fit_chat(model, request).kept
    return request if len(remaining) == len(request.prompt) else replace(request, prompt=remaining)


def has_bounded_context(model: core.LoadedModel, request: RunRequest) -> bool:
    """Return whether the text may only be as long as the model's context."""
    from decodescope import core

    return model.context is not None and not core.caches.registry[request.cache].unbounded


class FittedChat(NamedTuple):
    """The messages of a chat that fit the context."""

    kept: tuple[Mapping[str, str], ...]
    tokens: int
    """Tokens of all messages, and of the beginning of the answer."""
    kept_tokens: int
    room: int
    """Tokens reserved for the answer."""


def fit_chat(model: core.LoadedModel, request: RunRequest) -> FittedChat:
    """Return which messages of a chat fit the context of a model that has one, with a reserve for the answer."""
    from decodescope import core

    begun = sum(
        len(core.encode(model, part, unbounded=True)) if isinstance(part, str) and part else 1
        for part in request.beginning
    )

    def count(messages: Sequence[Any]) -> int:
        return len(core.encode(model, messages, unbounded=True)) + begun

    messages = tuple(part for part in request.prompt if isinstance(part, Mapping))
    context = model.context or 0
    room = min(int(request.config.get("max_new_tokens") or 0), context // conversation.MAX_ANSWER_DIVISOR)
    kept = conversation.trim(messages, context, room, request.when_full or conversation.DROP, count)
    return FittedChat(kept, count(messages), count(kept), room)


def score_stream(
    model: core.LoadedModel, request: RunRequest, comparison: core.LoadedModel | None, cancel: threading.Event
) -> Iterator[Event]:
    """Return the events of a scored text: a prompt with its answer, for an encoder–decoder the answer given its source,
    or the text alone.
    """
    from decodescope import core

    text: object = request.prompt
    given: object = None
    if request.beginning and model.is_encoder_decoder:
        text, given = request.beginning, request.prompt
    elif request.beginning:
        text = (*core.encode(model, request.prompt, unbounded=True), *request.beginning)
    return core.score_stream(
        model, text, request.top_n, given=given, second=comparison, cancel=cancel, watermark=request.options
    )
