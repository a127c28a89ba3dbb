"""Map a decoder's submodules by structure instead of class, so that a fused pass can use them.

A guess is enough: whatever is built from it is checked against the module before use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import SiLUActivation

from decodescope.core.decoding.forward.fused_layers import (
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
    map_mixture,
)
from decodescope.core.decoding.forward.rotary import AngleFunction, RotaryEmbedding, Rotation, join_pairs
from decodescope.core.models.adapters.low_rank_path import low_rank_path

Positions = torch.Tensor | slice
"""Positions of the tokens of a pass: [n], or a range that follows the cache."""
_TRUNKS = ("model.decoder", "model", "transformer", "gpt_neox")
_FIXED_ROPES = ("default", "linear", "llama3", "yarn", "proportional")
"""RoPE types whose angles do not depend on the text's length."""
_ATTENTION = ("self_attn", "attn", "attention", "self_attention")
_PROJECTIONS = (("q_proj", "k_proj", "v_proj"), ("qkv_proj",), ("c_attn",), ("query_key_value",))
_OUT = ("o_proj", "out_proj", "c_proj", "dense")
_FIRST_NORM = ("input_layernorm", "ln_1", "self_attn_layer_norm")
_SECOND_NORM = ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2", "final_layer_norm")
_LAST_NORM = ("norm", "ln_f", "final_layer_norm", "final_layernorm")
_UP = ("c_fc", "dense_h_to_4h", "fc1", "fc_in")
_DOWN = ("c_proj", "dense_4h_to_h", "fc2", "fc_out")
_ACT = ("act_fn", "activation_fn", "act", "gelu_impl")
_UNSCALED = ("gpt_neo",)
"""Model types that do not scale attention scores."""


_Part = TypeVar("_Part")


class UnsupportedArchitecture(Exception):
    """A required submodule is missing or of another kind."""


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer: the operations on hidden states [B, n, D]."""

    norm: TensorFunction | None
    """Norm before attention."""
    project: TensorFunction
    q_norm: TensorFunction | None
    k_norm: TensorFunction | None
    has_joint_norms: bool
    """Whether these are norms of all heads together, instead of each head (OLMo 2)."""
    out: TensorFunction
    norm_out: TensorFunction | None
    """Norm after attention, before the residual addition (Gemma, OLMo 2)."""
    norm_mlp: TensorFunction | None
    mlp: TensorFunction
    norm_mlp_out: TensorFunction | None
    norms_sums: bool
    """Whether `norm` and `norm_mlp` follow the residual additions, instead of preceding both halves (OPT-350M)."""
    is_parallel: bool
    """Whether attention and MLP both read the layer's input; without `norm_mlp`, its norm (NeoX; Cohere, Phi)."""
    residual_scale: float
    """Factor of the outputs of attention and MLP (Granite)."""
    window: int | None
    """Maximum number of tokens it attends to."""
    rope: str
    """Key of the rotary embedding of its queries and keys; empty for none."""


@dataclass(frozen=True, slots=True)
class DecoderModules:
    """The submodules of a decoder."""

    device: torch.device
    embed: TensorFunction
    widen: TensorFunction | None
    """Linear map of the embeddings to the width of the layers (OPT-350M)."""
    embed_scale: float
    positions: torch.Tensor | None
    """Learned position embeddings, from the first position on."""
    embed_norm: TensorFunction | None
    layers: tuple[DecoderLayer, ...]
    norm: TensorFunction | None
    narrow: TensorFunction | None
    """Linear map of the states to the width of the output head's input (OPT-350M)."""
    head: TensorFunction
    ropes: Mapping[str, RotaryEmbedding]
    slopes: torch.Tensor | None
    """Slopes [heads] of linear biases on the positions of keys (ALiBi)."""
    heads: int
    kv_heads: int
    width: int
    """Width of a head."""
    is_interleaved: bool
    """Whether projections are ordered by key–value head (its queries, key and value), instead of by kind."""
    scaling: float
    attention_cap: float | None
    logit_scale: float
    logit_cap: float | None

    def embed_tokens(self, ids: torch.Tensor, places: Positions) -> torch.Tensor:
        """Return the embeddings [B, n, D] of ids [B, n] at these positions."""
        hidden = self.embed(ids)
        if self.widen is not None:
            hidden = self.widen(hidden)
        if self.embed_scale != 1.0:
            hidden = hidden * self.embed_scale
        if self.positions is not None:
            index = torch.arange(places.start, places.stop, device=ids.device) if isinstance(places, slice) else places
            hidden = hidden + F.embedding(index, self.positions)
        return hidden if self.embed_norm is None else self.embed_norm(hidden)

    def head_input(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return what the output head reads for states [.., D] of the last layer."""
        hidden = hidden if self.norm is None else self.norm(hidden)
        return hidden if self.narrow is None else self.narrow(hidden)

    def rotary_table(self, kind: str, length: int) -> Rotation:
        """Return cos and signed sin of at least the first `length` positions of a fixed rotary embedding."""
        table = self.ropes[kind].lookup(0, length)
        return table.cos, table.sin

    def key_bias(self, length: int) -> torch.Tensor | None:
        """Return the biases [heads, length] of keys by position; None for none."""
        return None if self.slopes is None else self.slopes[:, None] * torch.arange(length, device=self.device)


def map_modules(network: Any, copies: bool) -> DecoderModules:
    """Map the network's submodules. `copies` allows joining matrices of the same input. Raises
    UnsupportedArchitecture.
    """
    config, trunk = network.config, _trunk(network)
    first = next(iter(_layers(trunk)))
    attention = _attention(first)
    heads = config.num_attention_heads
    width = _head_width(attention, config)
    embed = network.get_input_embeddings()
    widen, narrow = trunk._modules.get("project_in"), trunk._modules.get("project_out")
    reject(embed.weight.shape[-1] != config.hidden_size and widen is None, "the embedding is projected")
    capped = config._attn_implementation == "eager"
    has_alibi = hasattr(trunk, "build_alibi_tensor")
    norm = next((trunk._modules[name] for name in _LAST_NORM if trunk._modules.get(name) is not None), None)
    reject(norm is None and not any(hasattr(trunk, name) for name in _LAST_NORM), "no last norm")
    scaling = vars(attention).get("scaling", 1.0 if config.model_type in _UNSCALED else width**-0.5)
    return DecoderModules(
        device=embed.weight.device,
        embed=TokenEmbedding(embed.weight) if _is_plain_embedding(embed) else embed,
        widen=None if widen is None else fuse_linears([widen]),
        embed_scale=float(_config_field(config, "embedding_multiplier") or 1.0),
        positions=_positions(trunk),
        embed_norm=_optional_norm(trunk, "word_embeddings_layernorm"),
        layers=tuple(_map_layer(layer, place, config, copies) for place, layer in enumerate(_layers(trunk))),
        norm=None if norm is None else fuse_norm(norm),
        narrow=None if narrow is None else fuse_linears([narrow]),
        head=fuse_linears([network.get_output_embeddings()]),
        ropes=_ropes(trunk, config),
        slopes=alibi_slopes(heads).to(embed.weight.device) if has_alibi else None,
        heads=heads,
        kv_heads=_config_field(config, "num_key_value_heads") or heads,
        width=width,
        is_interleaved="query_key_value" in attention._modules,
        scaling=float(scaling),
        attention_cap=_config_field(config, "attn_logit_softcapping") if capped else None,
        logit_scale=_logit_scale(config),
        logit_cap=_config_field(config, "final_logit_softcapping"),
    )


def _is_plain_embedding(module: nn.Module) -> bool:
    return type(module) is nn.Embedding and module.max_norm is None and low_rank_path(module) is None


def _logit_scale(config: object) -> float:
    return float(_config_field(config, "logit_scale") or 1.0) / float(_config_field(config, "logits_scaling") or 1.0)


def alibi_slopes(heads: int) -> torch.Tensor:
    """Return float32 slopes [heads] of linear biases, as in "Train Short, Test Long" (Press et al., 2022)."""

    def powers(count: int) -> list[float]:
        return [2.0 ** (-8.0 * (index + 1) / count) for index in range(count)]

    closest = 2 ** int(math.log2(heads))
    return torch.tensor(powers(closest) + powers(2 * closest)[::2][: heads - closest])


def _attention(layer: nn.Module) -> nn.Module:
    """Return the module with the projections (GPT-Neo wraps it in another)."""
    attention = _submodule(layer, _ATTENTION)
    return attention._modules.get("attention") or attention


def _map_layer(layer: nn.Module, index: int, config: Any, copies: bool) -> DecoderLayer:
    attention, parts = _attention(layer), layer._modules
    names = next((names for names in _PROJECTIONS if names[0] in attention._modules), None)
    reject(names is None or not vars(attention).get("is_causal", True), "no projections of its own")
    assert names is not None
    reject(bool(_config_field(config, "apply_residual_connection_post_layernorm")), "residuals of normed states")
    has_after = "post_feedforward_layernorm" in parts
    has_before = any(name in parts for name in _FIRST_NORM)
    second = None if has_after and not has_before else next((name for name in _SECOND_NORM if name in parts), None)
    has_one_norm = second is None and not has_after
    reject(not has_before and not has_after, "no norms")
    q_norm, k_norm = (
        attention._modules.get(f"{kind}_norm") or attention._modules.get(f"{kind}_layernorm") for kind in "qk"
    )
    kinds = _config_field(config, "layer_types")
    kind = kinds[index] if kinds else None
    return DecoderLayer(
        norm=fuse_norm(_submodule(layer, _FIRST_NORM)) if has_before else None,
        project=fuse_linears([_submodule(attention, (name,)) for name in names], copies),
        q_norm=None if q_norm is None else fuse_norm(q_norm),
        k_norm=None if k_norm is None else fuse_norm(k_norm),
        has_joint_norms=q_norm is not None and _is_joint(q_norm, attention, config),
        out=fuse_linears([_submodule(attention, _OUT)]),
        norm_out=_optional_norm(layer, "post_attention_layernorm") if has_after else None,
        norm_mlp=None if second is None else fuse_norm(_submodule(layer, (second,))),
        mlp=_map_mlp(layer, copies),
        norm_mlp_out=_optional_norm(layer, "post_feedforward_layernorm") if has_after else None,
        norms_sums=_config_field(config, "do_layer_norm_before") is False,
        is_parallel=bool(vars(layer).get("use_parallel_residual", has_one_norm)),
        residual_scale=float(vars(layer).get("residual_multiplier", 1.0)),
        window=_window(attention, config, kind),
        rope=(kind or "full_attention") if vars(attention).get("use_rope", True) else "",
    )


def _is_joint(norm: nn.Module, attention: nn.Module, config: Any) -> bool:
    """Return whether a norm of queries is as wide as all heads together."""
    weight = norm._parameters.get("weight")
    return weight is not None and weight.dim() == 1 and len(weight) != _head_width(attention, config)


def _map_mlp(layer: nn.Module, copies: bool) -> TensorFunction:
    """Map the MLP; a module of another kind, such as a mixture of experts, is used as it is."""
    mlp = layer._modules.get("mlp") or layer
    parts = mlp._modules
    if mlp is not layer and not _has_activation(mlp):
        return map_mixture(mlp) or mlp
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
    reject(not callable(found), "no activation")
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
    reject(not isinstance(layers, nn.ModuleList) or not len(layers), "no list of layers")
    assert isinstance(layers, nn.ModuleList)
    return list(layers)


def _positions(trunk: nn.Module) -> torch.Tensor | None:
    table = trunk._modules.get("wpe") or trunk._modules.get("embed_positions")
    if table is None:
        return None
    reject(not isinstance(table, nn.Embedding), "positions of another kind")
    assert isinstance(table, nn.Embedding)
    return table.weight[int(vars(table).get("offset", 0)) :]


def _ropes(trunk: nn.Module, config: Any) -> dict[str, RotaryEmbedding]:
    """Return the rotary embeddings by layer type; empty if there are none."""
    rotary = trunk._modules.get("rotary_emb")
    if rotary is None:
        return {}
    device = next(_tensors(rotary)).device
    table = rotary._buffers.get("embed_positions")
    if table is not None:
        angles = join_pairs(_angles(rotary, None))
        return {"full_attention": RotaryEmbedding(angles, device, max_positions=len(table))}
    rope_parameters = config.rope_parameters
    kinds = {"": rope_parameters} if "rope_type" in rope_parameters else rope_parameters
    present = set(_config_field(config, "layer_types") or ("full_attention",))
    return {
        kind: _rope(rotary, kind if "" not in kinds else None, kinds[kind if "" not in kinds else ""], config, device)
        for kind in present
    }


def _rope(rotary: nn.Module, kind: str | None, settings: Any, config: Any, device: torch.device) -> RotaryEmbedding:
    name, angles = settings["rope_type"], _angles(rotary, kind)
    if name == "longrope":
        return RotaryEmbedding(angles, device, int(settings["original_max_position_embeddings"]))
    if name == "dynamic":
        return RotaryEmbedding(angles, device, int(config.max_position_embeddings), follows_length=True)
    reject(name not in _FIXED_ROPES, "angles that follow the length")
    return RotaryEmbedding(angles, device)


def _angles(rotary: nn.Module, kind: str | None) -> AngleFunction:
    example = next(_tensors(rotary))

    def angles(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        more = () if kind is None else (kind,)
        first, second = rotary(example.new_zeros(1, dtype=torch.float32), positions, *more)
        return first, second

    return angles


def _tensors(module: nn.Module) -> Iterator[torch.Tensor]:
    yield from module.buffers()
    yield from module.parameters()


def _window(attention: nn.Module, config: object, kind: str | None) -> int | None:
    if vars(attention).get("attention_type") in ("global", "local"):  # GPT-Neo
        size: int | None = _config_field(config, "window_size")
        return size if vars(attention)["attention_type"] == "local" else None
    window: int | None = _config_field(config, "sliding_window")
    if kind is None:
        return window
    reject(kind not in ("full_attention", "sliding_attention"), "layers of another kind")
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


def _head_width(attention: nn.Module, config: Any) -> int:
    sizes = (vars(attention).get(name) for name in ("head_dim", "head_size"))
    return next((size for size in sizes if isinstance(size, int)), 0) or (
        config.hidden_size // config.num_attention_heads
    )


def _config_field(config: object, name: str) -> Any:
    """Return a field that only some configurations have."""
    return getattr(config, name, None)


def reject(condition: bool, why: str) -> None:
    """Raise UnsupportedArchitecture under a condition."""
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
    reject(embed.dtype != torch.float32 or embed.device.type != "cpu", "weights of another kind")
    reject(modules.positions is not None or modules.slopes is not None or len(ropes) != 1, "positions of another kind")
    reject(modules.widen is not None or modules.narrow is not None or modules.embed_norm is not None, "embeddings")
    reject(modules.embed_scale != 1.0 or modules.logit_scale != 1.0, "multipliers")
    reject(modules.attention_cap is not None or modules.logit_cap is not None, "capped logits")
    (rope,) = ropes
    is_plain = rope in modules.ropes and modules.ropes[rope].is_fixed and not modules.ropes[rope].is_adjacent
    reject(not is_plain or modules.rotary_table(rope, 1)[0].shape[-1] != modules.width, "another rotation")
    reject(modules.is_interleaved, "layers of another kind")
    layers, norm = tuple(map(_llama_layer, modules.layers)), _expect(modules.norm, RootMeanSquare)
    norms = (one for layer in layers for one in (layer.norm, layer.q_norm, layer.k_norm, layer.norm_mlp))
    reject(any(one is not None and one.eps != norm.eps for one in norms), "several epsilons")
    (head,) = _unbiased(modules.head)
    return LlamaWeights(embed, layers, norm, head, rope)


def _llama_layer(layer: DecoderLayer) -> LlamaLayer:
    mlp = _expect(layer.mlp, GatedMlp)
    reject(activation_name(mlp.act) != "silu", "an activation of another kind")
    reject(layer.is_parallel or layer.window is not None or layer.residual_scale != 1.0, "layers of another kind")
    reject(layer.norm_out is not None or layer.norm_mlp_out is not None or layer.norms_sums, "norms after attention")
    reject(layer.has_joint_norms, "norms of all heads")
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
    reject(any(bias is not None for _, bias in parts), "biases")
    return tuple(weight for weight, _ in parts)


def _expect(part: object, kind: type[_Part]) -> _Part:
    reject(not isinstance(part, kind), "parts of another kind")
    return cast("_Part", part)
