"""Compare a model's config with the one that is read back from its GGUF file, field by field."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedConfig
from transformers.activations import ACT2FN
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from decodescope.core.models.gguf.tensor_operations import HeadCounts

_TRAINING = (
    "attention_dropout", "attn_pdrop", "classifier_dropout", "embd_pdrop", "embedding_dropout", "hidden_dropout",
    "initializer_range", "resid_pdrop", "residual_dropout", "rescale_prenorm_residual", "router_aux_loss_coef",
    "router_jitter_noise", "time_step_floor", "time_step_init_scheme", "time_step_max", "time_step_min",
    "time_step_scale",
)  # fmt: skip
_OTHER_HEADS = (
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
)  # fmt: skip
_SAME_NUMBERS = (
    "output_router_logits", "pretraining_tp", "reorder_and_upcast_attn", "residual_in_fp32", "slow_but_exact",
    "use_associative_scan", "use_cache", "use_mambapy",
)  # fmt: skip
_DERIVED = (
    "_sliding_window_pattern", "block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of", "expand",
    "full_attn_idxs", "max_window_layers", "no_rope_layer_interval", "original_max_position_embeddings",
    "sliding_window_pattern", "use_sliding_window",
)  # fmt: skip
_TOKENS = ("bos_token_id", "eod_token_id", "eos_token_id", "pad_token_id")
WITHOUT_EFFECT = frozenset(
    {
        *_TRAINING,  # used for training or to draw new weights
        *_OTHER_HEADS,  # describe another head than that of a language model
        *_SAME_NUMBERS,  # choose how the same numbers are computed or returned
        *_DERIVED,  # only give other fields their values, which are compared
        *_TOKENS,  # belong to the tokenizer's metadata
        "num_nextn_predict_layers",  # counts layers that transformers does not build
    }
)
"""Fields that never change logits by themselves."""
_BOOKKEEPING = frozenset(PreTrainedConfig().to_dict())
"""Fields of every config: versions, names of classes and labels, the dtype, what is returned."""


class FieldDifference(NamedTuple):
    """A field whose value is not the one that is read back."""

    field: str
    own: Any
    read: Any

    def __str__(self) -> str:
        return f"{self.field} = {_shorten(self.own)}"


def different_fields(own: PreTrainedConfig, read: PreTrainedConfig, is_head_shared: bool) -> list[FieldDifference]:
    """Return the fields that may change logits and differ. `is_head_shared`: whether the head has the embedding's
    weights, whatever `own` says. Fields that one of the classes does not have count as None.
    """
    names = set(_fields_of(type(own)))
    if type(own) is not type(read):
        names |= _fields_of(type(read))
    found = []
    for name in sorted(names - _BOOKKEEPING - WITHOUT_EFFECT):
        one, other = effective_value(own, name), effective_value(read, name)
        if name == "tie_word_embeddings":
            one = is_head_shared
        is_same = _is_same_rotation(own, read) if name == "rope_parameters" else _is_same(one, other)
        if not is_same:
            found.append(FieldDifference(name, one, other))
    return found


def fields_named_in(text: str, config: PreTrainedConfig) -> list[str]:
    """Return the fields of a config that a text names, also with spaces in their names as validators write them."""
    words = " " + text.lower() + " "
    return sorted(
        name for name in _fields_of(type(config)) - _BOOKKEEPING if name in words or name.replace("_", " ") in words
    )


def head_width(config: PreTrainedConfig) -> int:
    """Return the numbers of an attention head; the model's width without heads."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // HeadCounts.of(config).queries)


def unusual_fields(config: PreTrainedConfig) -> list[str]:
    """Return the fields that may change logits and do not have the value of their class."""
    usual = type(config)()
    names = _fields_of(type(config)) - _BOOKKEEPING - WITHOUT_EFFECT
    return sorted(name for name in names if not _is_same(getattr(config, name, None), getattr(usual, name, None)))


def effective_value(config: PreTrainedConfig, name: str) -> Any:
    """Return the value of a field that the model computes with; None without such a field."""
    value = getattr(config, name, None)
    match name:
        case "head_dim":
            return head_width(config)
        case "n_inner":
            return value or 4 * config.hidden_size
        case "intermediate_size" if getattr(config, "block_auto_adjust_ff_dim", False):
            return adjusted_width(config)
        case "num_key_value_heads" if hasattr(config, "kv_lora_rank"):
            return None  # latent attention has keys of its own for every head
        case "topk_method" if (getattr(config, "n_group", None) or 1) == 1:
            return "greedy"  # there is one group to choose from
    if config.model_type == "falcon":
        match name:
            case "multi_query" if config.new_decoder_architecture:
                return False
            case "num_kv_heads" if not config.new_decoder_architecture:
                return 1 if config.multi_query else config.num_attention_heads
            case "num_ln_in_parallel_attn" if config.new_decoder_architecture:
                return 2 if value is None else value
    return value


def _fields_of(kind: Any) -> frozenset[str]:
    """Return the fields that a class declares, and those that it computes."""
    return frozenset({field.name for field in dataclasses.fields(kind)} | kind().to_dict().keys())


def _is_same(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, bool) or isinstance(other, bool):
        return one == other or (not one and not other)
    if isinstance(one, str) and isinstance(other, str) and one in ACT2FN and other in ACT2FN:
        return one == other or _is_same_activation(one, other)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    return bool(one == other)


@cache
def _is_same_activation(one: str, other: str) -> bool:
    """Return whether two names stand for the same function (gelu_new and gelu_pytorch_tanh), by its values."""
    points = torch.linspace(-8, 8, 1001)
    try:
        return bool(torch.allclose(ACT2FN[one](points), ACT2FN[other](points), rtol=1e-4, atol=1e-6))
    except Exception:  # functions with parameters, or of other packages
        return False


def _is_same_rotation(own: PreTrainedConfig, read: PreTrainedConfig) -> bool:
    """Return whether the rotary positions of two configs have the same frequencies and factors, for short and for long
    texts, however their rules are written.
    """
    try:
        ours, theirs = list(_rotations(own)), list(_rotations(read))
    except (ArithmeticError, KeyError, RuntimeError, TypeError, ValueError):  # a rule without what it needs
        return False
    if len(ours) != len(theirs):
        return False
    return all(
        one.layers == other.layers and one.rule == other.rule and _is_same(one.factors, other.factors)
        and one.frequencies.shape == other.frequencies.shape
        and bool(torch.allclose(one.frequencies, other.frequencies, rtol=1e-5, atol=0))
        for one, other in zip(ours, theirs, strict=True)
    )  # fmt: skip


class Rotation(NamedTuple):
    """Rotary positions of a kind of layers at one length of the text."""

    layers: str
    rule: str
    """A rule whose frequencies depend on the text in a way that no numbers here show; empty for the others."""
    factors: tuple[float, ...]
    """By what the rotated numbers are multiplied, and Deepseek's further factor of attention."""
    frequencies: torch.Tensor


def _rotations(config: PreTrainedConfig) -> Iterator[Rotation]:
    config = copy.deepcopy(config)
    if getattr(config, "head_dim", 0) is None:  # transformers' rules cannot do without it
        config.head_dim = head_width(config)
    rope: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    if not rope:
        return
    nested = {kind: one for kind, one in rope.items() if isinstance(one, Mapping)}
    for kind, one in sorted(nested.items()) if nested else [("", rope)]:
        original = one.get("original_max_position_embeddings") or 0
        for length in (1, int(original) + 1):
            yield rotation(config, kind, one, length)


def rotation(config: PreTrainedConfig, layers: str, rope: Mapping[str, Any], length: int) -> Rotation:
    """Return the rotary positions of the layers `layers`, or of all if empty, for a text of `length` tokens."""
    rule = str(rope.get("rope_type", "default"))
    if (rule_function := ROPE_INIT_FUNCTIONS.get(rule)) is not None:
        kinds = {"layer_type": layers} if layers else {}
        frequencies, factor = rule_function(config, torch.device("cpu"), seq_len=length, **kinds)
    else:
        rotated = rotated_width(rope, head_width(config))
        frequencies, factor = float(rope["rope_theta"]) ** (-torch.arange(0, rotated, 2) / max(rotated, 1)), 1.0
    more = rope.get("mscale_all_dim") or 0.0 if rule == "yarn" and hasattr(config, "kv_lora_rank") else 0.0
    return Rotation(layers, rule if rule == "dynamic" else "", (float(factor), float(more)), frequencies.float())


def adjusted_width(config: PreTrainedConfig) -> int:
    """Return the width between the matrices of LFM2's feed-forward layers, which its module computes from the config's
    by the rule of Llama's first code.
    """
    if not config.block_auto_adjust_ff_dim:
        return int(config.intermediate_size)
    width, multiple = int(2 * config.intermediate_size / 3), config.block_multiple_of
    if config.block_ffn_dim_multiplier is not None:
        width = multiple * -(-int(config.block_ffn_dim_multiplier * width) // multiple)
    return width


def rotated_width(rope: Mapping[str, Any], width: int) -> int:
    """Return how many of the `width` numbers of a head are rotated."""
    return int(width * (rope.get("partial_rotary_factor") or 1.0))


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
