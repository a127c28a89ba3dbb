"""What the layers of a model keep per token, read from its configuration: the ground of every prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import get_layer_types_and_kwargs

from core.models.model import LoadedModel

RECURRENT = {"linear_attention", "conv", "hybrid", "hybrid_sliding"}
"""Layer types that hold (also) a state of constant size."""


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One decoder layer: heads of keys and values, their widths, its window (None: it sees everything)."""

    kind: str
    heads: int
    key_width: int
    value_width: int
    window: int | None = None

    def attention_bytes(self, tokens: int, batch: int, size: int) -> int:
        """Bytes of keys and values of `tokens` tokens, `size` bytes a number."""
        return batch * self.heads * tokens * (self.key_width + self.value_width) * size

    @property
    def attends(self) -> bool:
        """It keeps keys and values."""
        return self.kind not in ("linear_attention", "conv", "dummy")


def layer_shapes(model: LoadedModel) -> list[LayerShape]:
    """Every decoder layer, first to last; read from the configuration once."""
    if "layer_shapes" not in model.remembered:
        model.remembered["layer_shapes"] = _read_shapes(model)
    shapes: list[LayerShape] = model.remembered["layer_shapes"]
    return shapes


def _read_shapes(model: LoadedModel) -> list[LayerShape]:
    config = model.config
    kinds, details = get_layer_types_and_kwargs(config)
    if model.is_encoder_decoder:
        kinds, details = kinds[: model.layers], details[: model.layers]
    heads, key, value = _heads(config), *_widths(config)
    return [
        LayerShape(kind, heads, key, value, detail.get("sliding_window"))
        for kind, detail in zip(kinds, details, strict=True)
    ]


def _heads(config: Any) -> int:
    """Key–value heads: grouped or multi-query attention keep fewer than there are query heads."""
    if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
        return 1
    for name in ("num_key_value_heads", "num_kv_heads", "decoder_attention_heads", "num_attention_heads"):
        if heads := getattr(config, name, None):
            return int(heads)
    return 1


def _widths(config: Any) -> tuple[int, int]:
    """(key width, value width) of a head."""
    if getattr(config, "kv_lora_rank", None) and getattr(config, "qk_nope_head_dim", None):
        return config.qk_nope_head_dim + config.qk_rope_head_dim, config.v_head_dim
    width = getattr(config, "head_dim", None) or getattr(config, "d_kv", None)
    if not width:
        queries = getattr(config, "decoder_attention_heads", None) or getattr(config, "num_attention_heads", None) or 1
        width = config.hidden_size // queries
    return int(width), int(width)


def element_size(model: LoadedModel) -> int:
    """Bytes of one number in the model's own precision."""
    return torch.empty((), dtype=model.dtype).element_size()


def source_length(length: int, options: Mapping[str, Any]) -> int:
    """Tokens an encoder–decoder's cross-attention keeps: `source_length` of the options, else the text's own length."""
    return int(options.get("source_length") or length)


def predict_full(model: LoadedModel, length: int, batch: int) -> int:
    """Bytes of the decoder's own keys and values when every layer keeps all `length` tokens, states included."""
    size = element_size(model)
    attention = sum(s.attention_bytes(length, batch, size) for s in layer_shapes(model) if s.attends)
    return attention + state_bytes(model, batch)


def predict_windowed(model: LoadedModel, length: int, batch: int) -> int:
    """The same with windowed layers keeping one token less than their window: the next token fills it."""
    size, total = element_size(model), 0
    for shape in layer_shapes(model):
        if shape.attends:
            held = length if shape.window is None else min(length, shape.window - 1)
            total += shape.attention_bytes(held, batch, size)
    return total + state_bytes(model, batch)


def predict_cross(model: LoadedModel, length: int, batch: int, options: Mapping[str, Any]) -> int:
    """Bytes of the cross-attention half; 0 for decoder-only models."""
    if not model.is_encoder_decoder:
        return 0
    size, source = element_size(model), source_length(length, options)
    return sum(shape.attention_bytes(source, batch, size) for shape in layer_shapes(model))


def state_bytes(model: LoadedModel, batch: int) -> int:
    """Bytes of the recurrent states: by the configuration for Mamba, by one token's pass for other kinds."""
    recurrent = sum(shape.kind in RECURRENT for shape in layer_shapes(model))
    if not recurrent:
        return 0
    config = model.config
    if config.model_type in ("mamba", "falcon_mamba"):
        # The state itself is kept in float32 whatever the weights are.
        channel = int(config.conv_kernel) * element_size(model) + int(config.state_size) * 4
        return recurrent * batch * int(config.intermediate_size) * channel
    return batch * _probe(model)


@torch.inference_mode()
def _probe(model: LoadedModel) -> int:
    """Bytes of all states for one row, seen after reading one token; remembered with the model."""
    if "state_bytes" not in model.remembered:
        from transformers import DynamicCache

        cache = DynamicCache(config=model.config)
        name = "cache_params" if model.is_mamba else "past_key_values"
        model.model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=model.device), use_cache=True, **{name: cache})
        model.remembered["state_bytes"] = sum(_states(layer) for layer in cache.layers)
    return int(model.remembered["state_bytes"])


def _states(layer: Any) -> int:
    states = [*getattr(layer, "conv_states", {}).values(), *getattr(layer, "recurrent_states", {}).values()]
    return sum(int(state.untyped_storage().nbytes()) for state in states if state is not None)
