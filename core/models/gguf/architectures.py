"""Meaning of llama.cpp's metadata and tensor names in transformers, one entry per architecture.

A GGUF file has no config.json: `transformers_config` makes its content from the metadata, and `parameter_names` says
which tensor is which parameter, with the operation that undoes what llama.cpp's converter did to it. Importing this
module does not import torch. Names and keys: llama.cpp's gguf-py (constants.py, tensor_mapping.py) and its converter
convert_hf_to_gguf.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from core.errors import ConfigInvalidError, UnknownArchitectureError
from core.models.gguf.gguf_file import GgufFile, TextArray
from resources.language import tr

Config: TypeAlias = "dict[str, object]"
"""The content of a config.json."""

ROWS_OF_Q, ROWS_OF_K, MINUS_ONE, BY_HEAD, TRANSPOSED, UNSQUEEZED = (
    "rows of queries", "rows of keys", "minus one", "by head", "transposed", "unsqueezed"
)  # fmt: skip
"""Operations on a tensor of the file: reorder the rows of queries or of keys (llama.cpp rotates neighbouring numbers of
a head, transformers its halves), subtract one from a norm, reorder the rows of queries, keys and values from by kind to
by head, transpose a matrix (GPT-2), insert a dimension (convolutions)."""

_IGNORED = re.compile(r"^(rope_freqs|rope_factors_(long|short)|blk\.\d+\.rope_freqs|blk\.\d+\.attn_rot_embd)\.weight$")
"""Tensors that the config already contains."""
_LAYER = re.compile(r"^blk\.(\d+)\.(.+)$")
_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0


class Target(NamedTuple):
    """The parameter that a tensor of the file belongs to."""

    name: str
    operation: str = ""
    part: str = ""
    """`gate` or `up` for experts, whose tensors are two in the file and one in transformers; else empty."""


@dataclass(frozen=True)
class GgufArchitecture:
    """How transformers represents an architecture of llama.cpp."""

    model_type: str
    outside: Mapping[str, str]
    """Names of the tensors outside the layers, without `.weight` or `.bias`."""
    layer: str
    """Prefix of a layer's parameters, with `{n}` for its number."""
    inside: Mapping[str, str]
    """Names of the tensors of a layer."""
    keys: Mapping[str, str]
    """Config keys by metadata keys, without the architecture's name before the first dot."""
    operations: Mapping[str, str] = field(default_factory=dict)
    """Operations by the tensor's name inside the layer, or outside."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Config values that files do not contain."""
    finish: Callable[[GgufFile, Config], None] = lambda file, config: None
    """Completes the config."""


_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_ATTENTION = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}  # fmt: skip
_MLP = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_GEMMA_NORMS = {
    "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip
_EXPERTS = {
    "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.gate_up_proj", "ffn_up_exps": "mlp.experts.gate_up_proj",
    "ffn_down_exps": "mlp.experts.down_proj",
}  # fmt: skip
_PARTS = {"ffn_gate_exps": "gate", "ffn_up_exps": "up"}
_LLAMA = {**_ATTENTION, **_MLP, **_NORMS}
_LAYER_PREFIX = "model.layers.{n}."
_SHAPE = {
    "context_length": "max_position_embeddings", "block_count": "num_hidden_layers", "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}  # fmt: skip
_RMS = {**_SHAPE, "attention.layer_norm_rms_epsilon": "rms_norm_eps"}
_HEAD_DIM = {"attention.key_length": "head_dim"}
_PERMUTED = {"attn_q": ROWS_OF_Q, "attn_k": ROWS_OF_K}
_OFFSET_NORMS = dict.fromkeys(("output_norm", *_GEMMA_NORMS, *_QK_NORMS), MINUS_ONE)


def _finish_llama(file: GgufFile, config: Config) -> None:
    config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    config["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors


def _finish_gemma2(file: GgufFile, config: Config) -> None:
    """Gemma 2 scales queries by the width of a head; its largest model by the width per head (its report, table 1)."""
    heads, width = _whole(config, "num_attention_heads"), _whole(config, "hidden_size")
    large = _whole(config, "num_hidden_layers") == 46
    config["query_pre_attn_scalar"] = width // heads if large else config["head_dim"]


def _finish_gemma3(file: GgufFile, config: Config) -> None:
    heads, width = _whole(config, "num_attention_heads"), _whole(config, "hidden_size")
    large = _whole(config, "num_hidden_layers") == 62
    config["query_pre_attn_scalar"] = width // heads if large else config["head_dim"]
    layers = _whole(config, "num_hidden_layers")
    config["layer_types"] = [
        "full_attention" if (number + 1) % 6 == 0 else "sliding_attention" for number in range(layers)
    ]
    local = file.number("gemma3.rope.freq_base_swa", 10_000.0)
    config["rope_parameters"] = {
        "full_attention": config["rope_parameters"],
        "sliding_attention": {"rope_type": "default", "rope_theta": local},
    }


def _finish_starcoder2(file: GgufFile, config: Config) -> None:
    config["use_bias"] = "blk.0.attn_q.bias" in file.tensors


def _finish_stablelm(file: GgufFile, config: Config) -> None:
    config["use_qkv_bias"] = "blk.0.attn_q.bias" in file.tensors
    config["use_parallel_residual"] = "blk.0.ffn_norm.weight" not in file.tensors
    if "blk.0.attn_q_norm.weight" in file.tensors:
        raise _unsupported(file, tr("its queries and keys are normalized head by head"))


def _finish_smollm3(file: GgufFile, config: Config) -> None:
    config["no_rope_layers"] = [int((n + 1) % 4 != 0) for n in range(_whole(config, "num_hidden_layers"))]


def _finish_qwen_moe(file: GgufFile, config: Config) -> None:
    config.setdefault("moe_intermediate_size", config.get("intermediate_size"))
    if "blk.0.ffn_gate_exps.weight" not in file.tensors:
        raise _unsupported(file, tr("each expert is a tensor of its own, as older converters wrote it"))


def _finish_gpt2(file: GgufFile, config: Config) -> None:
    config["n_positions"] = config.get("n_positions") or 1024


def _finish_neox(file: GgufFile, config: Config) -> None:
    parallel = file.metadata.get("gptneox.use_parallel_residual", True)
    config["use_parallel_residual"] = bool(parallel)


def _finish_lfm2(file: GgufFile, config: Config) -> None:
    kinds = file.metadata.get("lfm2.attention.head_count_kv")
    if not isinstance(kinds, memoryview) or not len(kinds):
        raise _unsupported(file, tr("it does not say which layers are convolutions"))
    counts = [int(count) for count in kinds]
    config["num_key_value_heads"] = max(counts)
    config["layer_types"] = ["full_attention" if count else "conv" for count in counts]
    config["conv_bias"] = any(name.endswith("shortconv.in_proj.bias") for name in file.tensors)


_QWEN_MOE_KEYS = {
    **_RMS, "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}  # fmt: skip

ARCHITECTURES: dict[str, GgufArchitecture] = {
    "llama": GgufArchitecture(
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _PERMUTED, finish=_finish_llama
    ),
    "mixtral": GgufArchitecture(
        "mixtral", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_NORMS, **_EXPERTS},
        {**_RMS, "expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}, _PERMUTED,
        {"sliding_window": None}, _finish_qwen_moe,
    ),
    "qwen2": GgufArchitecture("qwen2", _OUTSIDE, _LAYER_PREFIX, _LLAMA, _RMS),
    "qwen2moe": GgufArchitecture(
        "qwen2_moe", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, **_NORMS, **_EXPERTS, "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
            "ffn_up_shexp": "mlp.shared_expert.up_proj", "ffn_down_shexp": "mlp.shared_expert.down_proj",
            "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
        },
        _QWEN_MOE_KEYS, {"ffn_gate_inp_shexp": UNSQUEEZED}, {"norm_topk_prob": False}, _finish_qwen_moe,
    ),
    "qwen3": GgufArchitecture(
        "qwen3", _OUTSIDE, _LAYER_PREFIX, {**_LLAMA, **_QK_NORMS}, {**_RMS, **_HEAD_DIM}
    ),
    "qwen3moe": GgufArchitecture(
        "qwen3_moe", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_QK_NORMS, **_NORMS, **_EXPERTS},
        {**_QWEN_MOE_KEYS, **_HEAD_DIM}, defaults={"norm_topk_prob": True}, finish=_finish_qwen_moe,
    ),
    "gemma": GgufArchitecture(
        "gemma", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _OFFSET_NORMS,
        {"hidden_act": "gelu_pytorch_tanh"},
    ),
    "gemma2": GgufArchitecture(
        "gemma2", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, **_GEMMA_NORMS},
        {
            **_RMS, **_HEAD_DIM, "attention.sliding_window": "sliding_window",
            "attn_logit_softcapping": "attn_logit_softcapping", "final_logit_softcapping": "final_logit_softcapping",
        },
        _OFFSET_NORMS, {"sliding_window": 4096}, _finish_gemma2,
    ),
    "gemma3": GgufArchitecture(
        "gemma3_text", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, **_GEMMA_NORMS, **_QK_NORMS},
        {**_RMS, **_HEAD_DIM, "attention.sliding_window": "sliding_window"}, _OFFSET_NORMS, {}, _finish_gemma3,
    ),
    "phi3": GgufArchitecture(
        "phi3", _OUTSIDE, _LAYER_PREFIX,
        {
            "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj",
            "ffn_down": "mlp.down_proj", **_NORMS,
        },
        {**_RMS, "attention.sliding_window": "sliding_window"}, {}, {"sliding_window": None},
    ),
    "gpt2": GgufArchitecture(
        "gpt2",
        {
            "token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        "transformer.h.{n}.",
        {
            "attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
            "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
        },
        {
            "context_length": "n_positions", "block_count": "n_layer", "embedding_length": "n_embd",
            "feed_forward_length": "n_inner", "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        dict.fromkeys(("attn_qkv", "attn_output", "ffn_up", "ffn_down"), TRANSPOSED), finish=_finish_gpt2,
    ),
    "starcoder2": GgufArchitecture(
        "starcoder2", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        {**_SHAPE, "attention.layer_norm_epsilon": "norm_epsilon"}, {}, {"sliding_window": None}, _finish_starcoder2,
    ),
    "stablelm": GgufArchitecture(
        "stablelm", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps"},
        finish=_finish_stablelm,
    ),
    "olmo2": GgufArchitecture(
        "olmo2", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, **_MLP, **_QK_NORMS, "post_attention_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        _RMS,
    ),
    "granite": GgufArchitecture(
        "granite", _OUTSIDE, _LAYER_PREFIX, _LLAMA,
        {
            **_RMS, "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
            "attention.scale": "attention_multiplier", "logit_scale": "logits_scaling",
        },
        _PERMUTED, finish=_finish_llama,
    ),
    "smollm3": GgufArchitecture(
        "smollm3", _OUTSIDE, _LAYER_PREFIX, _LLAMA, _RMS, _PERMUTED, finish=_finish_smollm3
    ),
    "command-r": GgufArchitecture(
        "cohere", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, **_QK_NORMS, "attn_norm": "input_layernorm"},
        {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale"},
    ),
    "gptneox": GgufArchitecture(
        "gpt_neox",
        {"token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "lm_head"},
        "gpt_neox.layers.{n}.",
        {
            "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
            "attn_qkv": "attention.query_key_value", "attn_output": "attention.dense", "ffn_up": "mlp.dense_h_to_4h",
            "ffn_down": "mlp.dense_4h_to_h",
        },
        {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps"}, {"attn_qkv": BY_HEAD}, finish=_finish_neox,
    ),
    "bloom": GgufArchitecture(
        "bloom",
        {
            "token_embd": "transformer.word_embeddings", "token_embd_norm": "transformer.word_embeddings_layernorm",
            "output_norm": "transformer.ln_f", "output": "lm_head",
        },
        "transformer.h.{n}.",
        {
            "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
            "attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
            "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
        },
        {
            "block_count": "n_layer", "embedding_length": "hidden_size", "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        {"attn_qkv": BY_HEAD},
    ),
    "lfm2": GgufArchitecture(
        "lfm2",
        {"token_embd": "model.embed_tokens", "token_embd_norm": "model.embedding_norm", "output": "lm_head"},
        _LAYER_PREFIX,
        {
            "attn_norm": "operator_norm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.out_proj", "attn_q_norm": "self_attn.q_layernorm",
            "attn_k_norm": "self_attn.k_layernorm", "ffn_norm": "ffn_norm", "ffn_gate": "feed_forward.w1",
            "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2", "shortconv.in_proj": "conv.in_proj",
            "shortconv.out_proj": "conv.out_proj", "shortconv.conv": "conv.conv",
        },
        {
            **{key: value for key, value in _SHAPE.items() if key != "attention.head_count_kv"},
            "attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache",
        },
        {"shortconv.conv": UNSQUEEZED}, {"block_auto_adjust_ff_dim": False}, _finish_lfm2,
    ),
}  # fmt: skip
"""By llama.cpp's name; Mixtral has an entry of its own here, although llama.cpp calls it llama."""


def architecture_of(file: GgufFile) -> GgufArchitecture:
    """Return the entry of a file's architecture. Raises UnknownArchitectureError."""
    name = file.architecture
    if name == "llama" and (file.number("llama.expert_count") or 0) > 0:
        name = "mixtral"
    found = ARCHITECTURES.get(name)
    if found is None:
        raise _unsupported(file, tr("its architecture “{name}” is none of those").format(name=name[:80]))
    return found


def transformers_config(file: GgufFile) -> Config:
    """Return what config.json would contain. Raises UnknownArchitectureError, ConfigInvalidError."""
    if file.text("general.type") == "adapter":
        raise ConfigInvalidError(
            tr("{file} is an adapter, not a model.").format(file=file.files[0].name),
            tr("Open the model that it was trained for, and add the adapter to it."),
        )
    known, prefix = architecture_of(file), file.architecture
    config: Config = {"model_type": known.model_type, "dtype": "float32", **known.defaults}
    for key, name in known.keys.items():
        value = _scalar(file, f"{prefix}.{key}")
        if value is not None:
            config[name] = value
    _check_layers(file)
    words = file.tensors.get("token_embd.weight")
    if words is None or len(words.shape) != 2:
        raise ConfigInvalidError(
            tr("{file} contains no token embeddings.").format(file=file.files[0].name),
            tr("Choose a language model; adapters and projectors are not models."),
        )
    config["vocab_size"] = words.shape[0]
    config["tie_word_embeddings"] = "output.weight" not in file.tensors
    for special in ("bos", "eos"):
        config[f"{special}_token_id"] = _token_id(file, f"tokenizer.ggml.{special}_token_id", words.shape[0])
    config["pad_token_id"] = _token_id(file, "tokenizer.ggml.padding_token_id", words.shape[0])
    _add_rope(file, config)
    known.finish(file, config)
    return config


def _check_layers(file: GgufFile) -> None:
    """Check that the metadata count the layers that are there, before anything is built of them.

    Raises ConfigInvalidError.
    """
    there = 1 + max((int(found[1]) for name in file.tensors if (found := _LAYER.match(name))), default=-1)
    counted = file.number(f"{file.architecture}.block_count")
    if counted != there:
        raise ConfigInvalidError(
            tr("{file} gives {stated} as its number of layers, but contains {contained}.").format(
                file=file.files[0].name, stated=counted, contained=there
            ),
            tr("Copy or download the file again."),
        )


def parameter_names(file: GgufFile) -> dict[str, Target]:
    """Return the parameter of each tensor. Raises UnknownArchitectureError if there are tensors of unknown meaning."""
    known = architecture_of(file)
    found: dict[str, Target] = {}
    unknown: list[str] = []
    for tensor in file.tensors:
        if _IGNORED.match(tensor):
            continue
        target = target_of(known, tensor)
        if target is None:
            unknown.append(tensor)
        else:
            found[tensor] = target
    if unknown:
        raise _unsupported(
            file, tr("it contains tensors of unknown meaning ({names} …)").format(names=", ".join(unknown[:3]))
        )
    return found


def target_of(known: GgufArchitecture, tensor: str) -> Target | None:
    """Return the parameter of a tensor; None for a tensor of unknown meaning."""
    stem, _, kind = tensor.rpartition(".")
    if kind not in ("weight", "bias"):
        return None
    layer = _LAYER.match(stem)
    if layer is None:
        name = known.outside.get(stem)
        return None if name is None else Target(f"{name}.{kind}", known.operations.get(stem, ""))
    number, inside = layer.groups()
    name = known.inside.get(inside)
    if name is None:
        return None
    whole = known.layer.format(n=number) + name
    if not inside.endswith("_exps"):
        whole += f".{kind}"
    return Target(whole, known.operations.get(inside, ""), _PARTS.get(inside, ""))


def _scalar(file: GgufFile, key: str) -> int | float | None:
    """Return a number; of an array with one value per layer, the value that all layers share."""
    value = file.metadata.get(key)
    if isinstance(value, memoryview):
        values = set(value)
        if len(values) == 1:
            (only,) = values
            return only
        return None
    return file.number(key)


def _token_id(file: GgufFile, key: str, vocabulary: int) -> int | None:
    value = file.number(key)
    return value if isinstance(value, int) and 0 <= value < vocabulary else None


def _whole(config: Config, key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise ConfigInvalidError(
            tr("The metadata do not contain {key}.").format(key=key), tr("Copy or download the file again.")
        )
    return value


def _add_rope(file: GgufFile, config: Config) -> None:
    """Add the base, the width and the scaling of rotary positions."""
    prefix = f"{file.architecture}.rope"
    theta = file.number(f"{prefix}.freq_base", 10_000.0)
    width = file.number(f"{prefix}.dimension_count")
    heads = config.get("num_attention_heads")
    hidden = config.get("hidden_size")
    head_dim = config.get("head_dim") or (
        hidden // heads if isinstance(hidden, int) and isinstance(heads, int) and heads else 0
    )
    rope: Config = {"rope_type": "default", "rope_theta": theta}
    if isinstance(width, int) and isinstance(head_dim, int) and 0 < width < head_dim:
        rope["partial_rotary_factor"] = width / head_dim
    kind, factor = file.text(f"{prefix}.scaling.type"), file.number(f"{prefix}.scaling.factor")
    original = file.number(f"{prefix}.scaling.original_context_length")
    if kind == "linear" and factor:
        rope |= {"rope_type": "linear", "factor": factor}
    elif kind == "yarn" and factor:
        rope |= {"rope_type": "yarn", "factor": factor}
        if original:
            rope["original_max_position_embeddings"] = original
    if "rope_factors_long.weight" in file.tensors and "rope_factors_short.weight" in file.tensors:
        rope |= {
            "rope_type": "longrope", "long_factor": _floats(file, "rope_factors_long.weight"),
            "short_factor": _floats(file, "rope_factors_short.weight"),
        }  # fmt: skip
        context = config.get("max_position_embeddings")
        config["original_max_position_embeddings"] = rope["original_max_position_embeddings"] = original or context
        if attention := file.number(f"{prefix}.scaling.attn_factor"):
            rope["attention_factor"] = attention
    elif "rope_freqs.weight" in file.tensors:
        rope |= _divided_frequencies(_floats(file, "rope_freqs.weight"), float(theta or 0), config)
    config["rope_parameters"] = rope


def _divided_frequencies(factors: list[float], theta: float, config: Config) -> Config:
    """Return the scaling that divides each frequency by a factor: Llama 3's rule where it gives these factors, else the
    factors themselves.

    llama.cpp stores the factors only (Llama 3's rule: Dubey et al. 2024, "The Llama 3 Herd of Models").
    """
    most = max(factors)
    for original in (8192, 16384, 4096, 32768):
        rule = [_llama3_factor(theta ** (-2 * i / (2 * len(factors))), most, original) for i in range(len(factors))]
        if all(abs(one - other) <= 1e-3 * other for one, other in zip(rule, factors, strict=True)):
            return {
                "rope_type": "llama3", "factor": most, "low_freq_factor": _LLAMA3_LOW, "high_freq_factor": _LLAMA3_HIGH,
                "original_max_position_embeddings": original,
            }  # fmt: skip
    context = config.get("max_position_embeddings")
    return {
        "rope_type": "longrope", "long_factor": factors, "short_factor": factors, "attention_factor": 1.0,
        "original_max_position_embeddings": context,
    }  # fmt: skip


def _llama3_factor(frequency: float, factor: float, original: int) -> float:
    """Return by what Llama 3's rule divides a frequency."""
    length = 2 * 3.141592653589793 / frequency
    if length < original / _LLAMA3_HIGH:
        return 1.0
    if length > original / _LLAMA3_LOW:
        return factor
    smooth = (original / length - _LLAMA3_LOW) / (_LLAMA3_HIGH - _LLAMA3_LOW)
    return 1 / ((1 - smooth) / factor + smooth)


def _floats(file: GgufFile, name: str) -> list[float]:
    tensor = file.tensors[name]
    if tensor.fmt.name != "F32" or len(tensor.shape) != 1:
        raise _unsupported(file, tr("the tensor {name} is not a list of float32").format(name=name))
    return list(file.data(tensor).cast("f"))


def _unsupported(file: GgufFile, reason: str) -> UnknownArchitectureError:
    known = ", ".join(sorted(ARCHITECTURES))
    return UnknownArchitectureError(
        tr("{file} cannot be used: {reason}.").format(file=file.files[0].name, reason=reason),
        tr("Choose the model in safetensors format, or a GGUF file of one of these architectures: {known}.").format(
            known=known
        ),
    )


def chat_templates(file: GgufFile) -> str | dict[str, str] | None:
    """Return the file's chat template; several by name if there are; None without one."""
    default = file.text("tokenizer.chat_template")
    names = file.metadata.get("tokenizer.chat_templates")
    several = {
        name: text
        for name in (names if isinstance(names, TextArray) else ())
        if (text := file.text(f"tokenizer.chat_template.{name}")) is not None
    }
    if several and default is not None:
        several.setdefault("default", default)
    return several or default
