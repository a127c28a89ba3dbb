"""Reads a given text with a model, as a request's settings and cache do."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from transformers.cache_utils import DynamicCache

from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.prediction_heads import PredictionHeads
from decodescope.core.request import Request
from decodescope.core.settings import resolve_settings


def final_scores(
    model: LoadedModel, request: Request, ids: Sequence[int], cancel: threading.Event
) -> Iterator[FloatArray]:
    """Yield the processed scores [V] before each of the new tokens `ids`, one forward pass each."""
    return translate_iterator_errors(model, partial(_read, model, request, ids, cancel))


class HeadReading(NamedTuple):
    """Scores of a draft head for each token of a text, if it reads one of the layers of the model."""

    layer: int
    """0: the embeddings; n: the output of layer n, after the last norm for the last one."""
    scores: list[FloatArray]
    """The head's processed scores [V] before each token."""


def head_scores(
    model: LoadedModel, request: Request, ids: Sequence[int], heads: PredictionHeads, cancel: threading.Event
) -> Iterator[HeadReading]:
    """Yield, for every layer, the scores of the first draft head before each of the new tokens `ids`.

    Heads are made for the last layer. Each token is drafted from the text before it: the head combines the token before
    with the layer's state of the one before that. Raises the errors of `stream`.
    """
    return translate_iterator_errors(model, partial(_read_heads, model, request, ids, heads, cancel))


def _read_heads(
    model: LoadedModel, request: Request, ids: Sequence[int], heads: PredictionHeads, cancel: threading.Event
) -> Iterator[HeadReading]:
    with model.adapters.using(request.adapters), torch.inference_mode():
        strategy, settings = resolve_settings(model, request.with_settings({"max_new_tokens": len(ids)}))
        decoding = DecodingRun(model, request, strategy, settings, cancel)
        start = len(decoding.start_ids)
        text = torch.tensor([[*decoding.start_ids, *ids]], device=decoding.device)
        count = text.shape[1] - 1
        hidden = model.model(input_ids=text, output_hidden_states=True, use_cache=False).hidden_states
        blocked = torch.full((count, count), torch.finfo(model.dtype).min, device=decoding.device, dtype=model.dtype)
        positions = torch.arange(1, count + 1, device=decoding.device)[None]
        for layer, states in enumerate(hidden):
            if cancel.is_set():
                return
            given, mask = states[:, :-1].to(model.dtype), blocked.triu(1)[None, None]
            found = heads.read(0, text[:, 1:], given, positions, mask, DynamicCache())
            logits = heads.scores(found[:, max(start - 2, 0) : count - 1])
            rows = list[FloatArray]()
            for step, row in enumerate(logits, len(ids) - len(logits)):
                trace = decoding.pipeline.trace(text[:, : start + step], decoding.replace_invalid(row[None]))
                rows.append(trace[-1][0].double().cpu().numpy())
            yield HeadReading(layer, rows)


def _read(model: LoadedModel, request: Request, ids: Sequence[int], cancel: threading.Event) -> Iterator[FloatArray]:
    with model.adapters.using(request.adapters):
        strategy, settings = resolve_settings(model, request)
        limit = settings.get("max_new_tokens")
        if limit is None or limit < len(ids):  # caches of a fixed size have room for the limit only
            strategy, settings = resolve_settings(model, request.with_settings({"max_new_tokens": len(ids)}))
        decoding = DecodingRun(model, request, strategy, settings, cancel)
        output, _ = decoding.prefill()
        for step, token in enumerate(ids):
            text = torch.tensor([[*decoding.start_ids, *ids[:step]]], device=decoding.device)
            trace = decoding.pipeline.trace(text, decoding.replace_invalid(output.last))
            yield trace[-1][0].double().cpu().numpy()
            if cancel.is_set():
                break
            if step < len(ids) - 1:
                output = decoding.forward(torch.tensor([[token]], device=decoding.device))
        decoding.forward.release_storages()
