"""Reads a given text with a model, as a request's settings and cache do."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.models.error_translation import translate_iterator_errors
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.request import Request
from decodescope.core.settings import resolve_settings


def final_scores(
    model: LoadedModel, request: Request, ids: Sequence[int], cancel: threading.Event
) -> Iterator[FloatArray]:
    """Yield the processed scores [V] before each of the new tokens `ids`, one forward pass each."""
    return translate_iterator_errors(model, partial(_read, model, request, ids, cancel))


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
