"""What the layers of a model keep of a text: seen in a pass over a token or a few, the ground of every prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import (
    Cache,
    LinearAttentionAndSlidingWindowAttentionLayer,
    get_layer_types_and_kwargs,
)

from core.caches.tensors.adapted_layer import CacheLayer
from core.caches.tensors.cache_editing import cross_layers, self_attention_half
from core.caches.tensors.compressed import (
    CompressorShape,
    compressor_shapes,
    has_entries,
    is_compressed,
    trial_length,
)
from core.caches.tensors.continuation_probe import memory_kind
from core.caches.tensors.layer_adapters import IndexedLayerAdapter, StateLayerAdapter, adapt_layer
from core.caches.tensors.meta_numbers import MetaValueMode
from core.caches.tensors.windowed import config_cache, with_cross_attention
from core.device_memory import is_out_of_memory
from core.errors import UnpredictableError
from core.models.loaded_model import LoadedModel
from core.models.text_decoder import dummy_encoder_outputs
from resources.language import tr

_KEY = "layer_shapes"


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One layer: heads of keys and values (0: it keeps none), their widths, bytes of a number, its window (None: it
    sees everything); bytes a token takes beside them, bytes of a state of constant size. All for one row."""

    heads: int = 0
    key_width: int = 0
    value_width: int = 0
    element_size: int = 0
    window: int | None = None
    extra_per_token: int = 0
    state: int = 0
    always_drops: bool = False
    """It keeps no more than its window in every cache, also in those that let other windowed layers keep all."""
    compressors: tuple[CompressorShape, ...] = ()

    @property
    def has_keys(self) -> bool:
        """It keeps keys and values."""
        return self.heads > 0


@dataclass(frozen=True, slots=True)
class LayerShapes:
    """The decoder's own layers, first to last, and those that keep what an encoder read."""

    own: tuple[LayerShape, ...]
    cross: tuple[LayerShape, ...] = ()

    @property
    def windows(self) -> list[int]:
        """Of all layers that have one."""
        return [shape.window for shape in self.own if shape.window is not None]


def model_layer_shapes(model: LoadedModel) -> LayerShapes:
    """Shapes of all layers, found out once. Raises UnpredictableError where only the model knows its memory."""
    found: LayerShapes | UnpredictableError | None = model.remembered.get(_KEY)
    if found is None:
        found = model.remembered[_KEY] = _compute_shapes(model)
    if isinstance(found, UnpredictableError):
        raise found
    return found


def remember_shapes(model: LoadedModel, cache: Cache | None) -> None:
    """Read them off a cache that a run has filled, so that nobody has to try."""
    if cache is None or not all(
        has_entries(layer) for layer in self_attention_half(cache).layers if is_compressed(layer)
    ):
        return
    if _KEY not in model.remembered:
        model.remembered[_KEY] = _shapes_from_cache(model, cache)


def _compute_shapes(model: LoadedModel) -> LayerShapes | UnpredictableError:
    """Whatever a foreign module raises, it cannot be predicted; without weights its configuration may still tell.

    Raises UnpredictableError, which is not remembered, when memory ends here: the run will meet that itself.
    """
    if not model.model._supports_default_dynamic_cache():
        return _unpredictable_error(model)
    try:
        return LayerShapes(()) if memory_kind(model) == "none" else _shapes_from_pass(model)
    except Exception as error:
        if is_out_of_memory(error):
            raise _unpredictable_error(model) from error
        return _shapes_from_config(model) or _unpredictable_error(model)


def _unpredictable_error(model: LoadedModel) -> UnpredictableError:
    return UnpredictableError(
        tr("What {model} keeps of a text cannot be told in advance.").format(model=model.name), tr("Run it and see.")
    )


# -- seen


@torch.inference_mode()
def _shapes_from_pass(model: LoadedModel) -> LayerShapes:
    """Read the shapes from a cache after a pass over one token, or as many as fill every kind of memory."""
    device = next(model.model.parameters()).device
    cache = with_cross_attention(model, config_cache(model))
    ids = torch.ones(1, trial_length(self_attention_half(cache).layers), dtype=torch.long, device=device)
    inputs: dict[str, object] = {"use_cache": True, model.cache_name: cache}
    with MetaValueMode() if device.type == "meta" else nullcontext():
        if model.is_encoder_decoder:
            model.model(decoder_input_ids=ids, encoder_outputs=dummy_encoder_outputs(model.model, ids), **inputs)
        else:
            model.model(input_ids=ids, **inputs)
    return _shapes_from_cache(model, cache)


def _shapes_from_cache(model: LoadedModel, cache: Cache) -> LayerShapes:
    windows = [detail.get("sliding_window") for detail in get_layer_types_and_kwargs(model.config)[1]]
    own, cross = self_attention_half(cache).layers, cross_layers(cache)
    rows = max(
        (piece.tensor.shape[0] for layer in own for piece in adapt_layer(layer).stored_tensors() if piece.tensor.dim()),
        default=1,
    )
    return LayerShapes(
        tuple(_shape(layer, window, rows) for layer, window in zip(own, windows, strict=False)),
        tuple(_shape(layer, None, rows) for layer in cross),
    )


def _shape(layer: CacheLayer, window: int | None, rows: int) -> LayerShape:
    """By what a layer keeps for `rows` rows."""
    if is_compressed(layer):
        return _compressed_shape(layer, rows)
    adapter = adapt_layer(layer)
    more = sum(piece.bytes for piece in adapter.stored_tensors() if piece.part not in ("keys", "values")) // rows
    state = more if isinstance(adapter, StateLayerAdapter) else 0
    tokens = adapter.tokens_read()
    if not tokens:
        return LayerShape(state=state)
    keys, values = adapter.states()
    beside = more // tokens if isinstance(adapter, IndexedLayerAdapter) else 0
    forgets = isinstance(layer, LinearAttentionAndSlidingWindowAttentionLayer)
    return LayerShape(
        keys.shape[1], keys.shape[3], values.shape[3], keys.element_size(), window, beside, state, forgets
    )


def _compressed_shape(layer: Any, rows: int) -> LayerShape:
    """Read the shape of a layer of compressed attention; its values are its keys, stored once."""
    keys, values = layer.keys, layer.values
    return LayerShape(
        keys.shape[1], keys.shape[3], 0 if values is keys else values.shape[3], keys.element_size(),
        int(layer.sliding_window), always_drops=True, compressors=tuple(compressor_shapes(layer, rows)),
    )  # fmt: skip


# -- told by a configuration


def _shapes_from_config(model: LoadedModel) -> LayerShapes | None:
    """By the configuration, for a model without weights whose code needs numbers; states then count for nothing."""
    config = model.config
    kinds, details = get_layer_types_and_kwargs(config)
    size = torch.empty((), dtype=model.dtype).element_size()
    layers = list(zip(kinds, details, config.per_layer_config, strict=True))[: model.layers]
    shapes = [_layer_from_config(kind, detail, layer, size) for kind, detail, layer in layers]
    own = tuple(shape for shape in shapes if shape is not None)
    if len(own) < len(shapes):
        return None
    return LayerShapes(own, own if model.is_encoder_decoder else ())


def _layer_from_config(kind: str, detail: Mapping[str, int], config: object, size: int) -> LayerShape | None:
    if kind in ("linear_attention", "conv", "dummy"):
        return LayerShape()
    if "config" in detail:  # compressed attention: only its own code knows what it keeps
        return None
    window = detail.get("sliding_window")
    rank, rope = (getattr(config, name, None) for name in ("kv_lora_rank", "qk_rope_head_dim"))
    if rank and rope:  # latent attention keeps what keys and values are made from
        return LayerShape(1, int(rank), int(rope), size, window)
    heads = next(_numbers(config, "num_key_value_heads", "num_kv_heads", "num_attention_heads"), None)
    width = next(_numbers(config, "head_dim", "d_kv"), None) or _default_head_width(config)
    return LayerShape(heads, width, width, size, window) if heads and width else None


def _default_head_width(config: object) -> int | None:
    """Width of a head where it is but a share of the hidden state."""
    hidden, heads = next(_numbers(config, "hidden_size"), None), next(_numbers(config, "num_attention_heads"), None)
    return hidden // heads if hidden and heads else None


def _numbers(config: object, *names: str) -> Iterator[int]:
    values = (getattr(config, name, None) for name in names)
    return (value for value in values if isinstance(value, int) and value)
