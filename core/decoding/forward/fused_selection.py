"""Which lean pass a model has, if any: chosen by what it is made of, and held against the module before it is used."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers.cache_utils import Cache, DynamicCache

from core.caches.tensors.preallocated import is_plain_dynamic_layer
from core.decoding.forward.fused_decoder import FusedDecoder
from core.decoding.forward.fused_llama import (
    MAX_JOINED_BYTES,
    FusedLlama,
    get_fused_llama,
    has_growing_layers,
    is_unmodified,
    matches_module,
    weight_bytes,
    weights_fingerprint,
)
from core.device_memory import is_out_of_memory
from core.models.loaded_model import LoadedModel
from core.models.quantized.weight_stats import content_hashes

log = logging.getLogger(__name__)

_KEY = "lean_decoder"


class FusedForward(Protocol):
    """float32 logits [B, keep, V] of ids [B, n]; the cache gains them."""

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor: ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class _FusedPassTrial:
    """What came of looking at a module as it was then."""

    fingerprint: object
    decoder: FusedDecoder | None


def select_fused_pass(model: LoadedModel, cache: object) -> FusedForward | None:
    """The lean pass of a model for a cache, where both have one."""
    if not has_growing_layers(cache):
        return None
    llama: FusedLlama | None = get_fused_llama(model)
    if llama is not None:
        return llama
    decoder = get_fused_decoder(model)
    return decoder if decoder is None or not decoder.has_windows or _has_standard_layers(cache) else None


def get_fused_decoder(model: LoadedModel) -> FusedDecoder | None:
    """Made once and kept with the model; made anew when its weights were changed, put aside when it was touched."""
    network = model.model
    modules = tuple(network.modules())  # walked once: this is asked before every run
    if not _can_be_fused(model) or network.training or not is_unmodified(modules):
        return None
    stamp = (weights_fingerprint(modules), content_hashes(modules))
    tried: _FusedPassTrial | None = model.remembered.get(_KEY)
    if tried is None or tried.fingerprint != stamp:
        model.remembered[_KEY] = tried = _FusedPassTrial(stamp, _build_fused_decoder(model))
    return tried.decoder


def discard_fused_decoder(model: LoadedModel) -> None:
    """The parts of its module were moved: what was made of them is made anew."""
    model.remembered.pop(_KEY, None)


def _can_be_fused(model: LoadedModel) -> bool:
    return (
        not model.is_encoder_decoder
        and not model.is_recurrent
        and model.dtype in (torch.float32, torch.bfloat16)
        and model.config._attn_implementation in ("sdpa", "eager")
    )


def _build_fused_decoder(model: LoadedModel) -> FusedDecoder | None:
    """A guess at what the module does, if it comes to the same."""
    network: Any = model.model
    try:
        decoder = FusedDecoder(network, weight_bytes(network) <= MAX_JOINED_BYTES)
        if decoder.has_experts and not model.has_exact_dtype:
            return None  # sixteen bits send tokens to other experts where two are near a tie
        return decoder if matches_module(decoder, model) else None
    except Exception as error:  # whatever a part is that was taken for another
        if is_out_of_memory(error):
            raise
        log.debug("no lean pass for %s: %s", type(network).__name__, error)
        return None


def _has_standard_layers(cache: object) -> bool:
    """Whether its layers are transformers' plain ones, whose places are those of the text."""
    return isinstance(cache, DynamicCache) and all(map(is_plain_dynamic_layer, cache.layers))
