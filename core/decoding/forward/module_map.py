"""Map a decoder's submodules by structure instead of class, so that a fused pass can use them.

A guess is enough: whatever is built from it is checked against the module before use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import SiLUActivation

from core.decoding.forward.fused_layers import (
    FeedForwardMlp,
    FloatLinear,
    GatedMlp,
    RootMeanSquare,
    TensorFunction,
    TokenEmbedding,
    WeightAndBias,
    activation_name,
    fuse_linears,
    fuse_norm,
)
from core.models.adapters.low_rank_path import low_rank_path

RotaryFunction = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""cos and sin [1, n, width] of positions [1, n]."""
Rotation = tuple[torch.Tensor, torch.Tensor]
"""cos and signed sin (first half negated), [n, rotated width]."""
Positions = torch.Tensor | slice
"""Positions of the tokens of a pass: [n], or a range that follows the cache."""
_TRUNKS = ("model.decoder", "model", "transformer", "gpt_neox")
_FIXED_ROPES = ("default", "linear", "llama3")
"""RoPE types whose angles do not depend on the text's length."""
_ATTENTION = ("self_attn", "attn", "attention")
_PROJECTIONS = (("q_proj", "k_proj", "v_proj"), ("qkv_proj",), ("c_attn",), ("query_key_value",))
_OUT = ("o_proj", "out_proj", "c_proj", "dense")
_FIRST_NORM = ("input_layernorm", "ln_1", "self_attn_layer_norm")
_SECOND_NORM = ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2", "final_layer_norm")
_UP = ("c_fc", "dense_h_to_4h", "fc1")
_DOWN = ("c_proj", "dense_4h_to_h", "fc2")
_ACT = ("act_fn", "activation_fn", "act")


_Part = TypeVar("_Part")


class UnsupportedArchitecture(Exception):
    """A required submodule is missing or of another kind."""


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer: the operations on hidden states [B, n, D]."""

    norm: TensorFunction
    project: TensorFunction
    is_interleaved: bool
    """Whether projections are ordered head by head (query, key, value of each) instead of by kind."""
    q_norm: TensorFunction | None
    k_norm: TensorFunction | None
    out: TensorFunction
    norm_out: TensorFunction | None
    """Norm after attention, before the residual addition (Gemma)."""
    norm_mlp: TensorFunction
    mlp: TensorFunction
    norm_mlp_out: TensorFunction | None
    is_parallel: bool
    """Whether attention and MLP both read the layer's input (NeoX)."""
    window: int | None
    """Maximum number of tokens it attends to."""
    rope: str
    """Key of the rotary embedding of its queries and keys; empty for none."""


@dataclass(frozen=True, slots=True)
class DecoderModules:
    """The submodules of a decoder."""

    device: torch.device
    embed: TensorFunction
    positions: torch.Tensor | None
    """Learned position embeddings, from the first position on."""
    layers: tuple[DecoderLayer, ...]
    norm: TensorFunction
    head: TensorFunction
    ropes: Mapping[str, RotaryFunction]
    heads: int
    kv_heads: int
    width: int
    """Width of a head."""
    scaling: float
    attention_cap: float | None
    logit_cap: float | None

    def embed_tokens(self, ids: torch.Tensor, places: Positions) -> torch.Tensor:
        """Return the embeddings [B, n, D] of ids [B, n] at these positions."""
        hidden = self.embed(ids)
        if self.positions is None:
            return hidden
        index = torch.arange(places.start, places.stop, device=ids.device) if isinstance(places, slice) else places
        return hidden + F.embedding(index, self.positions)

    def rotary_table(self, kind: str, length: int) -> Rotation:
        """Return cos and signed sin of the first `length` positions."""
        cos, sin = self.ropes[kind](torch.arange(length, device=self.device)[None])
        half = sin.shape[-1] // 2
        return cos[0].clone(), torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)


def map_modules(network: Any, copies: bool) -> DecoderModules:
    """Map the network's submodules. `copies` allows joining matrices of the same input. Raises
    UnsupportedArchitecture.
    """
    config, trunk = network.config, _trunk(network)
    first = next(iter(_layers(trunk)))
    attention = _submodule(first, _ATTENTION)
    width = _int_attribute(attention, "head_dim", "head_size") or config.hidden_size // config.num_attention_heads
    embed = network.get_input_embeddings()
    _reject(embed.weight.shape[-1] != config.hidden_size, "the embedding is projected")
    capped = config._attn_implementation == "eager"
    return DecoderModules(
        device=embed.weight.device,
        embed=TokenEmbedding(embed.weight) if _is_plain_embedding(embed) else embed,
        positions=_positions(trunk),
        layers=tuple(_map_layer(layer, place, config, copies) for place, layer in enumerate(_layers(trunk))),
        norm=fuse_norm(_submodule(trunk, ("norm", "ln_f", "final_layer_norm"))),
        head=fuse_linears([network.get_output_embeddings()]),
        ropes=_ropes(trunk, config),
        heads=config.num_attention_heads,
        kv_heads=_config_field(config, "num_key_value_heads") or config.num_attention_heads,
        width=width,
        scaling=float(vars(attention).get("scaling", width**-0.5)),
        attention_cap=_config_field(config, "attn_logit_softcapping") if capped else None,
        logit_cap=_config_field(config, "final_logit_softcapping"),
    )


def _is_plain_embedding(module: nn.Module) -> bool:
    return type(module) is nn.Embedding and module.max_norm is None and low_rank_path(module) is None


def _map_layer(layer: nn.Module, index: int, config: object, copies: bool) -> DecoderLayer:
    attention = _submodule(layer, _ATTENTION)
    names = next((names for names in _PROJECTIONS if names[0] in attention._modules), None)
    _reject(names is None or not vars(attention).get("is_causal", True), "no projections of its own")
    assert names is not None
    has_after = "post_feedforward_layernorm" in layer._modules and "pre_feedforward_layernorm" in layer._modules
    kinds = _config_field(config, "layer_types")
    return DecoderLayer(
        norm=fuse_norm(_submodule(layer, _FIRST_NORM)),
        project=fuse_linears([_submodule(attention, (name,)) for name in names], copies),
        is_interleaved=names == ("query_key_value",),
        q_norm=_optional_norm(attention, "q_norm"),
        k_norm=_optional_norm(attention, "k_norm"),
        out=fuse_linears([_submodule(attention, _OUT)]),
        norm_out=_optional_norm(layer, "post_attention_layernorm") if has_after else None,
        norm_mlp=fuse_norm(_submodule(layer, _SECOND_NORM)),
        mlp=_map_mlp(layer, copies),
        norm_mlp_out=_optional_norm(layer, "post_feedforward_layernorm") if has_after else None,
        is_parallel=bool(vars(layer).get("use_parallel_residual", False)),
        window=_window(config, kinds[index] if kinds else None),
        rope=kinds[index] if kinds else "full_attention",
    )


def _map_mlp(layer: nn.Module, copies: bool) -> TensorFunction:
    """Map the MLP; a module of another kind, such as a mixture of experts, is used as it is."""
    mlp = layer._modules.get("mlp") or layer
    parts = mlp._modules
    if mlp is not layer and not _has_activation(mlp):
        return mlp
    act = _activation(mlp)
    if "gate_up_proj" in parts and "down_proj" in parts:
        return GatedMlp(
            fuse_linears([_submodule(mlp, ("gate_up_proj",))]), fuse_linears([_submodule(mlp, ("down_proj",))]), act
        )
    if "gate_proj" in parts and "up_proj" in parts and "down_proj" in parts:
        both = [_submodule(mlp, (name,)) for name in ("gate_proj", "up_proj")]
        return GatedMlp(fuse_linears(both, copies), fuse_linears([_submodule(mlp, ("down_proj",))]), act)
    if mlp is not layer and not any(name in parts for name in _UP):
        return mlp
    return FeedForwardMlp(fuse_linears([_submodule(mlp, _UP)]), fuse_linears([_submodule(mlp, _DOWN)]), act)


def _has_activation(mlp: nn.Module) -> bool:
    return any(name in mlp._modules or name in vars(mlp) for name in _ACT)


def _activation(mlp: nn.Module) -> TensorFunction:
    found = next((mlp._modules.get(name) or vars(mlp).get(name) for name in _ACT if _has_member(mlp, name)), None)
    _reject(not callable(found), "no activation")
    return F.silu if isinstance(found, (nn.SiLU, SiLUActivation)) else cast("TensorFunction", found)


def _has_member(module: nn.Module, name: str) -> bool:
    return name in module._modules or name in vars(module)


def _trunk(network: nn.Module) -> nn.Module:
    for path in _TRUNKS:
        module: nn.Module | None = network
        for name in path.split("."):
            module = module._modules.get(name) if module is not None else None
        if module is not None and any(name in module._modules for name in ("layers", "h")):
            return module
    raise UnsupportedArchitecture("no list of layers")


def _layers(trunk: nn.Module) -> Sequence[nn.Module]:
    layers = _submodule(trunk, ("layers", "h"))
    _reject(not isinstance(layers, nn.ModuleList) or not len(layers), "no list of layers")
    assert isinstance(layers, nn.ModuleList)
    return list(layers)


def _positions(trunk: nn.Module) -> torch.Tensor | None:
    table = trunk._modules.get("wpe") or trunk._modules.get("embed_positions")
    if table is None:
        return None
    _reject(not isinstance(table, nn.Embedding), "positions of another kind")
    assert isinstance(table, nn.Embedding)
    return table.weight[int(vars(table).get("offset", 0)) :]


def _ropes(trunk: nn.Module, config: Any) -> dict[str, RotaryFunction]:
    """Return the rotary embeddings by layer type; empty if there are none."""
    rotary = trunk._modules.get("rotary_emb")
    if rotary is None:
        return {}
    rope_parameters = config.rope_parameters
    kinds = {"": rope_parameters} if "rope_type" in rope_parameters else rope_parameters
    _reject(any(rope["rope_type"] not in _FIXED_ROPES for rope in kinds.values()), "angles that follow the length")
    present = set(_config_field(config, "layer_types") or ("full_attention",))
    return {kind: _angles(rotary, kind if "" not in kinds else None) for kind in present}


def _angles(rotary: nn.Module, kind: str | None) -> RotaryFunction:
    example = next(_tensors(rotary))

    def angles(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        more = () if kind is None else (kind,)
        cos, sin = rotary(example.new_zeros(1, dtype=torch.float32), positions, *more)
        return cos, sin

    return angles


def _tensors(module: nn.Module) -> Iterator[torch.Tensor]:
    yield from module.buffers()
    yield from module.parameters()


def _window(config: object, kind: str | None) -> int | None:
    window: int | None = _config_field(config, "sliding_window")
    if kind is None:
        return window
    _reject(kind not in ("full_attention", "sliding_attention"), "layers of another kind")
    return window if kind == "sliding_attention" else None


def _optional_norm(module: nn.Module, name: str) -> TensorFunction | None:
    norm = module._modules.get(name)
    return fuse_norm(norm) if norm is not None else None


def _submodule(module: nn.Module, names: Sequence[str]) -> nn.Module:
    """Return the first submodule of these names. Raises UnsupportedArchitecture."""
    for name in names:
        part = module._modules.get(name)
        if part is not None:
            return part
    raise UnsupportedArchitecture(f"{type(module).__name__} has none of {', '.join(names)}")


def _int_attribute(module: nn.Module, *names: str) -> int | None:
    return next((value for name in names if isinstance(value := vars(module).get(name), int)), None)


def _config_field(config: object, name: str) -> Any:
    """Return a field that only some configurations have."""
    return getattr(config, name, None)


def _reject(condition: bool, why: str) -> None:
    if condition:
        raise UnsupportedArchitecture(why)


@dataclass(frozen=True, slots=True)
class LlamaLayer:
    """Weights of a layer of the Llama kind."""

    norm: RootMeanSquare
    project: tuple[WeightAndBias, ...]
    """Queries, keys and values, joined or not."""
    q_norm: RootMeanSquare | None
    k_norm: RootMeanSquare | None
    out: WeightAndBias
    norm_mlp: RootMeanSquare
    gate_up: tuple[torch.Tensor, ...]
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class LlamaWeights:
    """float32 weights of a decoder of the Llama kind on the CPU."""

    embed: torch.Tensor
    layers: tuple[LlamaLayer, ...]
    norm: RootMeanSquare
    """The last norm; its epsilon is that of all norms."""
    head: torch.Tensor
    rope: str


def llama_weights(modules: DecoderModules) -> LlamaWeights:
    """Return the weights of a decoder whose layers are those of Llama: RMS norms, rotary embeddings of whole heads and
    a gated MLP with SiLU, without windows or caps. Raises UnsupportedArchitecture for any other.
    """
    embed, ropes = _expect(modules.embed, TokenEmbedding).weight, {layer.rope for layer in modules.layers}
    _reject(embed.dtype != torch.float32 or embed.device.type != "cpu", "weights of another kind")
    _reject(modules.positions is not None or len(ropes) != 1, "positions of another kind")
    _reject(modules.attention_cap is not None or modules.logit_cap is not None, "capped logits")
    (rope,) = ropes
    is_whole = rope in modules.ropes and modules.rotary_table(rope, 1)[0].shape[-1] == modules.width
    _reject(not is_whole, "partial rotation")
    layers, norm = tuple(map(_llama_layer, modules.layers)), _expect(modules.norm, RootMeanSquare)
    norms = (one for layer in layers for one in (layer.norm, layer.q_norm, layer.k_norm, layer.norm_mlp))
    _reject(any(one is not None and one.eps != norm.eps for one in norms), "several epsilons")
    (head,) = _unbiased(modules.head)
    return LlamaWeights(embed, layers, norm, head, rope)


def _llama_layer(layer: DecoderLayer) -> LlamaLayer:
    mlp = _expect(layer.mlp, GatedMlp)
    _reject(activation_name(mlp.act) != "silu", "an activation of another kind")
    _reject(layer.is_interleaved or layer.is_parallel or layer.window is not None, "layers of another kind")
    _reject(layer.norm_out is not None or layer.norm_mlp_out is not None, "norms after attention")
    q_norm, k_norm = (
        None if norm is None else _expect(norm, RootMeanSquare) for norm in (layer.q_norm, layer.k_norm)
    )  # fmt: skip
    (out,), (down,) = _expect(layer.out, FloatLinear).parts, _unbiased(mlp.down)
    return LlamaLayer(
        _expect(layer.norm, RootMeanSquare), _expect(layer.project, FloatLinear).parts, q_norm, k_norm, out,
        _expect(layer.norm_mlp, RootMeanSquare), _unbiased(mlp.gate_up), down,
    )  # fmt: skip


def _unbiased(maps: TensorFunction) -> tuple[torch.Tensor, ...]:
    parts = _expect(maps, FloatLinear).parts
    _reject(any(bias is not None for _, bias in parts), "biases")
    return tuple(weight for weight, _ in parts)


def _expect(part: object, kind: type[_Part]) -> _Part:
    _reject(not isinstance(part, kind), "parts of another kind")
    return cast("_Part", part)
