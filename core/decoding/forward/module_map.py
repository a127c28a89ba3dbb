"""What a decoder is made of, found by its parts and not by its class: what a lean pass needs to go through it.

A guess is enough here: whatever is made of it is held against the module before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from core.decoding.forward.fused_layers import Change, FeedForwardMlp, GatedMlp, maps_of, norm_of

Angles = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""cos and sin [1, n, width] of positions [1, n]."""
_TRUNKS = ("model.decoder", "model", "transformer", "gpt_neox")
STEADY_ROPES = ("default", "linear", "llama3")
"""Rotary embeddings whose angles do not depend on the text's length."""
_ATTENTION = ("self_attn", "attn", "attention")
_PROJECTIONS = (("q_proj", "k_proj", "v_proj"), ("qkv_proj",), ("c_attn",), ("query_key_value",))
_OUT = ("o_proj", "out_proj", "c_proj", "dense")
_FIRST_NORM = ("input_layernorm", "ln_1", "self_attn_layer_norm")
_SECOND_NORM = ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2", "final_layer_norm")
_UP = ("c_fc", "dense_h_to_4h", "fc1")
_DOWN = ("c_proj", "dense_4h_to_h", "fc2")
_ACT = ("act_fn", "activation_fn", "act")


class UnsupportedArchitecture(Exception):
    """A part that is needed is not there, or is something else."""


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer: what is done to hidden states [B, n, D]."""

    norm: Change
    project: Change
    interleaved: bool
    """Projections lie head by head (query, key and value of one after the other), not kind by kind."""
    q_norm: Change | None
    k_norm: Change | None
    out: Change
    norm_out: Change | None
    """Behind attention, before it is added (Gemma)."""
    norm_mlp: Change
    mlp: Change
    norm_mlp_out: Change | None
    parallel: bool
    """Both halves read the layer's input (NeoX)."""
    window: int | None
    """Tokens that it sees at most."""
    rope: str
    """Which angles turn its queries and keys; empty for none."""


@dataclass(frozen=True, slots=True)
class DecoderModules:
    """A whole decoder."""

    embed: Change
    positions: tuple[torch.Tensor, int] | None
    """A learned table and the row of the first position."""
    layers: tuple[DecoderLayer, ...]
    norm: Change
    head: Change
    ropes: Mapping[str, Angles]
    heads: int
    kv_heads: int
    width: int
    """Of a head."""
    scaling: float
    attention_cap: float | None
    logit_cap: float | None


def anatomy_of(network: Any, copies: bool) -> DecoderModules:
    """Raises Unfamiliar. `copies`: matrices that are read together may be copied into one."""
    config, trunk = network.config, _trunk(network)
    first = next(iter(_layers(trunk)))
    attention = _part(first, _ATTENTION)
    width = _number(attention, "head_dim", "head_size") or config.hidden_size // config.num_attention_heads
    embed = network.get_input_embeddings()
    _refuse(embed.weight.shape[-1] != config.hidden_size, "the embedding is projected")
    capped = config._attn_implementation == "eager"
    return DecoderModules(
        embed=embed,
        positions=_positions(trunk),
        layers=tuple(_layer(layer, place, config, copies) for place, layer in enumerate(_layers(trunk))),
        norm=norm_of(_part(trunk, ("norm", "ln_f", "final_layer_norm"))),
        head=maps_of([network.get_output_embeddings()]),
        ropes=_ropes(trunk, config),
        heads=config.num_attention_heads,
        kv_heads=_field(config, "num_key_value_heads") or config.num_attention_heads,
        width=width,
        scaling=float(vars(attention).get("scaling", width**-0.5)),
        attention_cap=_field(config, "attn_logit_softcapping") if capped else None,
        logit_cap=_field(config, "final_logit_softcapping"),
    )


def _layer(layer: nn.Module, place: int, config: object, copies: bool) -> DecoderLayer:
    attention = _part(layer, _ATTENTION)
    names = next((names for names in _PROJECTIONS if names[0] in attention._modules), None)
    _refuse(names is None or not vars(attention).get("is_causal", True), "no projections of its own")
    assert names is not None
    has_after = "post_feedforward_layernorm" in layer._modules and "pre_feedforward_layernorm" in layer._modules
    kinds = _field(config, "layer_types")
    return DecoderLayer(
        norm=norm_of(_part(layer, _FIRST_NORM)),
        project=maps_of([_part(attention, (name,)) for name in names], copies),
        interleaved=names == ("query_key_value",),
        q_norm=_norm_in(attention, "q_norm"),
        k_norm=_norm_in(attention, "k_norm"),
        out=maps_of([_part(attention, _OUT)]),
        norm_out=_norm_in(layer, "post_attention_layernorm") if has_after else None,
        norm_mlp=norm_of(_part(layer, _SECOND_NORM)),
        mlp=_mlp(layer, copies),
        norm_mlp_out=_norm_in(layer, "post_feedforward_layernorm") if has_after else None,
        parallel=bool(vars(layer).get("use_parallel_residual", False)),
        window=_window(config, kinds[place] if kinds else None),
        rope=kinds[place] if kinds else "full_attention",
    )


def _mlp(layer: nn.Module, copies: bool) -> Change:
    """The feed-forward half; a module of another kind, such as a mixture of experts, does its work itself."""
    mlp = layer._modules.get("mlp") or layer
    parts = mlp._modules
    if mlp is not layer and not _has_act(mlp):
        return mlp
    act = _act(mlp)
    if "gate_up_proj" in parts and "down_proj" in parts:
        return GatedMlp(maps_of([_part(mlp, ("gate_up_proj",))]), maps_of([_part(mlp, ("down_proj",))]), act)
    if "gate_proj" in parts and "up_proj" in parts and "down_proj" in parts:
        both = [_part(mlp, (name,)) for name in ("gate_proj", "up_proj")]
        return GatedMlp(maps_of(both, copies), maps_of([_part(mlp, ("down_proj",))]), act)
    if mlp is not layer and not any(name in parts for name in _UP):
        return mlp
    return FeedForwardMlp(maps_of([_part(mlp, _UP)]), maps_of([_part(mlp, _DOWN)]), act)


def _has_act(mlp: nn.Module) -> bool:
    return any(name in mlp._modules or name in vars(mlp) for name in _ACT)


def _act(mlp: nn.Module) -> Change:
    found = next((mlp._modules.get(name) or vars(mlp).get(name) for name in _ACT if _has(mlp, name)), None)
    _refuse(not callable(found), "no activation")
    return cast("Change", found)


def _has(module: nn.Module, name: str) -> bool:
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
    layers = _part(trunk, ("layers", "h"))
    _refuse(not isinstance(layers, nn.ModuleList) or not len(layers), "no list of layers")
    assert isinstance(layers, nn.ModuleList)
    return list(layers)


def _positions(trunk: nn.Module) -> tuple[torch.Tensor, int] | None:
    table = trunk._modules.get("wpe") or trunk._modules.get("embed_positions")
    if table is None:
        return None
    _refuse(not isinstance(table, nn.Embedding), "positions of another kind")
    assert isinstance(table, nn.Embedding)
    return table.weight, int(vars(table).get("offset", 0))


def _ropes(trunk: nn.Module, config: Any) -> dict[str, Angles]:
    """The rotary embeddings by the kind of layer that they turn; none where there is none."""
    rotary = trunk._modules.get("rotary_emb")
    if rotary is None:
        return {}
    told = config.rope_parameters
    kinds = {"": told} if "rope_type" in told else told
    _refuse(any(rope["rope_type"] not in STEADY_ROPES for rope in kinds.values()), "angles that follow the length")
    present = set(_field(config, "layer_types") or ("full_attention",))
    return {kind: _angles(rotary, kind if "" not in kinds else None) for kind in present}


def _angles(rotary: nn.Module, kind: str | None) -> Angles:
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
    window: int | None = _field(config, "sliding_window")
    if kind is None:
        return window
    _refuse(kind not in ("full_attention", "sliding_attention"), "layers of another kind")
    return window if kind == "sliding_attention" else None


def _norm_in(module: nn.Module, name: str) -> Change | None:
    norm = module._modules.get(name)
    return norm_of(norm) if norm is not None else None


def _part(module: nn.Module, names: Sequence[str]) -> nn.Module:
    """The first of these. Raises Unfamiliar."""
    for name in names:
        part = module._modules.get(name)
        if part is not None:
            return part
    raise UnsupportedArchitecture(f"{type(module).__name__} has none of {', '.join(names)}")


def _number(module: nn.Module, *names: str) -> int | None:
    return next((value for name in names if isinstance(value := vars(module).get(name), int)), None)


def _field(config: object, name: str) -> Any:
    """A field that some configurations have."""
    return getattr(config, name, None)


def _refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise UnsupportedArchitecture(why)
