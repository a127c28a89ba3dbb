"""The architectures of llama.cpp as transformers represents them, one entry per architecture.

A GGUF file has no config.json, and names of its own for tensors. Reading and writing follow from the same entry:
`model_config.py` makes the config of the metadata and the metadata of the config, `tensor_names.py` the names of
parameters and tensors. Importing this module does not import torch. Names and keys: llama.cpp's gguf-py (constants.py,
tensor_mapping.py) and its converter convert_hf_to_gguf.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from decodescope.core.errors import ConfigInvalidError, UnknownArchitectureError
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

Config: TypeAlias = "dict[str, object]"
"""The content of a config.json."""
Metadata: TypeAlias = "dict[str, Any]"
"""Metadata to write: numbers, texts, and lists of them."""

ROWS_OF_Q, ROWS_OF_K, MINUS_ONE, BY_HEAD, BY_GROUP, TRANSPOSED, UNSQUEEZED, LOG_NEGATED, INTERLEAVED, JOINED = (
    "rows of queries", "rows of keys", "minus one", "by head", "by group", "transposed", "unsqueezed", "log negated",
    "interleaved", "joined by head",
)  # fmt: skip
"""Operations on a tensor of the file: reorder the rows of queries or of keys (llama.cpp rotates neighbouring numbers of
a head, transformers its halves), subtract one from a norm, reorder the rows of queries, keys and values from by kind to
by head or by group of heads with the same keys (Falcon 40B), transpose a matrix (GPT-2), insert a dimension
(convolutions), take the logarithm of the negated numbers (Mamba's A), transpose each expert's matrix and interleave the
outputs of its parts (GPT-OSS), join keys and values head by head (DeepSeek, whose keys are transposed)."""

_SOFTMAX, _SIGMOID = 1, 2
"""Values of `expert_gating_func`: how experts are scored."""


@dataclass(frozen=True)
class GgufArchitecture:
    """An architecture of llama.cpp as transformers represents it."""

    model_type: str
    outside: Mapping[str, str]
    """Names of the tensors outside the layers, without `.weight` or `.bias`."""
    layer: str
    """Prefix of a layer's parameters, with `{n}` for its number; empty if models are only read."""
    inside: Mapping[str, str]
    """Names of the tensors of a layer; those of an encoder begin with `enc.`, those of its decoder with `dec.`."""
    keys: Mapping[str, str]
    """Config keys by metadata keys, without the architecture's name before the first dot."""
    operations: Mapping[str, str] = field(default_factory=dict)
    """Operations by the tensor's name inside the layer, or outside."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Config values where the file does not contain them."""
    finish: Callable[[GgufFile, Config], None] = lambda file, config: None
    """Completes the config that is read."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Boolean config keys by metadata keys."""
    present: Mapping[str, str] = field(default_factory=dict)
    """Tensors that a file has if a Boolean config value is true, by its config key."""
    constants: Mapping[str, float] = field(default_factory=dict)
    """Metadata that all files of the architecture contain."""
    more_metadata: Callable[[PreTrainedConfig], Metadata] = lambda config: {}
    """Returns the metadata that follow from the config by a rule."""
    stored_name: str = ""
    """llama.cpp's name of the architecture where several entries have one."""
    applies: Callable[[GgufFile], bool] = lambda file: True
    """Returns whether a file with the stored name has this entry."""
    variant: Mapping[str, object] = field(default_factory=dict)
    """Config values that distinguish entries of one model type."""
    has_window_period: bool = False
    """Whether llama.cpp reads how many layers there are to each one without a window."""


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
_QUERY_BIAS = "blk.0.attn_q.bias"
_BIASES = {"attention_bias": _QUERY_BIAS, "mlp_bias": "blk.0.ffn_up.bias"}


def _finish_gemma2(file: GgufFile, config: Config) -> None:
    """Gemma 2 scales queries by the width of a head; its largest model by the width per head (its report, table 1)."""
    heads, width = whole_number(config, "num_attention_heads"), whole_number(config, "hidden_size")
    large = whole_number(config, "num_hidden_layers") == 46
    config["query_pre_attn_scalar"] = width // heads if large else config["head_dim"]


def _finish_gemma3(file: GgufFile, config: Config) -> None:
    heads, width = whole_number(config, "num_attention_heads"), whole_number(config, "hidden_size")
    large = whole_number(config, "num_hidden_layers") == 62
    config["query_pre_attn_scalar"] = width // heads if large else config["head_dim"]
    layers = whole_number(config, "num_hidden_layers")
    config["layer_types"] = window_layers(6, layers)
    local = file.number("gemma3.rope.freq_base_swa", 10_000.0)
    config["rope_parameters"] = {
        "full_attention": config["rope_parameters"],
        "sliding_attention": {"rope_type": "default", "rope_theta": local},
    }


def _finish_stablelm(file: GgufFile, config: Config) -> None:
    config["use_parallel_residual"] = "blk.0.ffn_norm.weight" not in file.tensors
    if "blk.0.attn_q_norm.weight" in file.tensors:
        raise unsupported_error(file, tr("its queries and keys are normalized head by head"))


def _finish_smollm3(file: GgufFile, config: Config) -> None:
    config["no_rope_layers"] = [int((n + 1) % 4 != 0) for n in range(whole_number(config, "num_hidden_layers"))]


def _finish_qwen_moe(file: GgufFile, config: Config) -> None:
    config.setdefault("moe_intermediate_size", config.get("intermediate_size"))
    if "blk.0.ffn_gate_exps.weight" not in file.tensors:
        raise unsupported_error(file, tr("each expert is a tensor of its own, as older converters wrote it"))


def _finish_lfm2(file: GgufFile, config: Config) -> None:
    kinds = file.metadata.get(f"{file.architecture}.attention.head_count_kv")
    if not isinstance(kinds, memoryview) or not len(kinds):
        raise unsupported_error(file, tr("it does not say which layers are convolutions"))
    counts = [int(count) for count in kinds]
    config["num_key_value_heads"] = max(counts)
    config["layer_types"] = ["full_attention" if count else "conv" for count in counts]
    config["conv_bias"] = any(name.endswith("shortconv.in_proj.bias") for name in file.tensors)


def _keys_by_layer(config: PreTrainedConfig) -> Metadata:
    """Return LFM2's numbers of key heads, by which files say which layers are convolutions."""
    counts = [config.num_key_value_heads if kind == "full_attention" else 0 for kind in config.layer_types]
    return {"attention.head_count_kv": counts}


def _feed_forward_length(config: PreTrainedConfig) -> Metadata:
    """Return the width between the two matrices of GPT-2 and BLOOM, whose configs may leave it out."""
    return {"feed_forward_length": getattr(config, "n_inner", None) or 4 * config.hidden_size}


def _finish_cohere2(file: GgufFile, config: Config) -> None:
    config["layer_types"] = window_layers(4, whole_number(config, "num_hidden_layers"))


def window_layers(period: int, layers: int) -> list[str]:
    """Return the kinds of layers of which each `period`-th one has no window; of 0, all have one."""
    return [
        "sliding_attention" if not period or number % period < period - 1 else "full_attention"
        for number in range(layers)
    ]


def _finish_exaone4(file: GgufFile, config: Config) -> None:
    """The large model has windows, except in every fourth layer; the small one has none (its report, section 2)."""
    has_windows = whole_number(config, "num_hidden_layers") == 64
    layers = whole_number(config, "num_hidden_layers")
    config["layer_types"] = window_layers(4 if has_windows else 1, layers)
    if not has_windows:
        config["sliding_window"] = None


def _finish_minicpm(file: GgufFile, config: Config) -> None:
    """MiniCPM is Granite's architecture with other factors; older files leave them to llama.cpp's defaults."""
    layers, width = whole_number(config, "num_hidden_layers"), whole_number(config, "hidden_size")
    config.setdefault("embedding_multiplier", 12.0)
    config.setdefault("residual_multiplier", 1.4 / layers**0.5)
    config.setdefault("logits_scaling", width / 256)
    config["attention_multiplier"] = (width // whole_number(config, "num_attention_heads")) ** -0.5


def _finish_head_dim(file: GgufFile, config: Config) -> None:
    config.setdefault("head_dim", whole_number(config, "hidden_size") // whole_number(config, "num_attention_heads"))


def _finish_falcon(file: GgufFile, config: Config) -> None:
    config["multi_query"] = config.get("num_kv_heads") == 1
    if not config["new_decoder_architecture"] and not config["multi_query"]:
        raise unsupported_error(file, tr("its positions are biases of attention (ALiBi), which files do not describe"))


def _finish_mamba(file: GgufFile, config: Config) -> None:
    config.pop("rope_parameters", None)
    config["expand"] = whole_number(config, "intermediate_size") // whole_number(config, "hidden_size")


def _finish_gpt_oss(file: GgufFile, config: Config) -> None:
    config["layer_types"] = window_layers(2, whole_number(config, "num_hidden_layers"))
    rope = config["rope_parameters"]
    if isinstance(rope, dict) and rope["rope_type"] == "yarn":
        rope["truncate"] = False


def _finish_deepseek(file: GgufFile, config: Config) -> None:
    """Read the widths of latent attention; newer files describe the one head that all heads share, and these apart."""
    prefix = file.architecture
    rotated = whole_number(config, "qk_rope_head_dim")
    for name, key in (("key_length", "qk_head_dim"), ("value_length", "v_head_dim")):
        value = file.number(f"{prefix}.attention.{name}_mla") or file.number(f"{prefix}.attention.{name}")
        if not isinstance(value, int) or value < 1:
            raise missing_key_error(file, f"{prefix}.attention.{name}")
        config[key] = value
    config["qk_nope_head_dim"] = whole_number(config, "qk_head_dim") - rotated
    if whole_number(config, "qk_head_dim") <= rotated:
        raise invalid_value_error(
            file, f"{prefix}.rope.dimension_count", rotated,
            tr("less than {width}, the width of a head").format(width=config["qk_head_dim"]),
        )  # fmt: skip
    config["head_dim"] = rotated
    config["num_key_value_heads"] = config["num_attention_heads"]
    if config.get("q_lora_rank") is None:
        config["q_lora_rank"] = None
    if config["model_type"] == "deepseek_v2":
        config["topk_method"] = "group_limited_greedy" if (config.get("n_group") or 1) != 1 else "greedy"
    rope = config["rope_parameters"]
    if isinstance(rope, dict):
        rope.pop("partial_rotary_factor", None)
        factor = file.number(f"{prefix}.rope.scaling.yarn_log_multiplier")
        if rope["rope_type"] == "yarn" and factor:
            rope["mscale"] = rope["mscale_all_dim"] = 10 * factor
            if attention := file.number(f"{prefix}.rope.scaling.attn_factor"):
                rope["attention_factor"] = attention


def _latent_widths(config: PreTrainedConfig) -> Metadata:
    return {
        "attention.head_count_kv": config.num_attention_heads, "attention.key_length": config.qk_head_dim,
        "attention.value_length": config.v_head_dim,
    }  # fmt: skip


def _finish_t5(file: GgufFile, config: Config) -> None:
    """Positions are learned biases; a head of its own reads unscaled states (T5 1.1)."""
    config.pop("rope_parameters", None)
    config.setdefault("num_decoder_layers", config.get("num_layers"))
    config["feed_forward_proj"] = "gated-gelu" if "enc.blk.0.ffn_gate.weight" in file.tensors else "relu"
    pad, start = config.get("pad_token_id"), file.number("t5.decoder_start_token_id")
    config["pad_token_id"] = 0 if pad is None else pad
    config["decoder_start_token_id"] = config["pad_token_id"] if start is None else start
    if config.get("eos_token_id") is None:
        config["eos_token_id"] = 1


_QWEN_MOE_KEYS = {
    **_RMS, "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}  # fmt: skip

_GRANITE_KEYS = {
    **_RMS, "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
    "attention.scale": "attention_multiplier", "logit_scale": "logits_scaling",
}  # fmt: skip
_LFM2_OUTSIDE = {"token_embd": "model.embed_tokens", "token_embd_norm": "model.embedding_norm", "output": "lm_head"}
_LFM2_LAYER = {
    "attn_norm": "operator_norm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.out_proj", "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm", "ffn_norm": "ffn_norm", "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3", "ffn_down": "feed_forward.w2", "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj", "shortconv.conv": "conv.conv",
}  # fmt: skip
_LFM2_KEYS = {
    **{key: value for key, value in _SHAPE.items() if key != "attention.head_count_kv"},
    "attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache",
}  # fmt: skip


def _falcon(norms: Mapping[str, str], operations: Mapping[str, str], **more: Any) -> GgufArchitecture:
    return GgufArchitecture(
        "falcon",
        {"token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f", "output": "lm_head"},
        "transformer.h.{n}.",
        {
            **norms, "attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense",
            "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h",
        },
        {
            "context_length": "max_position_embeddings", "block_count": "num_hidden_layers",
            "embedding_length": "hidden_size", "feed_forward_length": "ffn_hidden_size",
            "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_kv_heads",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        operations, {"alibi": False, "parallel_attn": True}, _finish_falcon,
        present={"bias": "blk.0.attn_qkv.bias"}, **more,
    )  # fmt: skip


def _t5(model_type: str, is_gated: bool, **more: Any) -> GgufArchitecture:
    attention = {"attn_q": "q", "attn_k": "k", "attn_v": "v", "attn_o": "o"}
    dense = {"ffn_up": "wi_1" if is_gated else "wi", "ffn_down": "wo", **({"ffn_gate": "wi_0"} if is_gated else {})}
    inside: dict[str, str] = {}
    for stack, target, last in (("enc.", "encoder", 1), ("dec.", "decoder", 2)):
        block = f"{target}.block.{{n}}.layer."
        inside |= {stack + name: f"{block}0.SelfAttention.{own}" for name, own in attention.items()}
        inside |= {stack + name: f"{block}{last}.DenseReluDense.{own}" for name, own in dense.items()}
        inside |= {
            f"{stack}attn_norm": f"{block}0.layer_norm", f"{stack}ffn_norm": f"{block}{last}.layer_norm",
            f"{stack}attn_rel_b": f"{block}0.SelfAttention.relative_attention_bias",
        }  # fmt: skip
    cross = "decoder.block.{n}.layer.1."
    inside |= {f"dec.cross_{name}": f"{cross}EncDecAttention.{own}" for name, own in attention.items()}
    inside["dec.cross_attn_norm"] = f"{cross}layer_norm"
    return GgufArchitecture(
        model_type,
        {
            "token_embd": "shared", "enc.output_norm": "encoder.final_layer_norm",
            "dec.output_norm": "decoder.final_layer_norm", "output": "lm_head",
        },
        "", inside,
        {
            "context_length": "n_positions", "block_count": "num_layers", "decoder_block_count": "num_decoder_layers",
            "embedding_length": "d_model", "feed_forward_length": "d_ff", "attention.head_count": "num_heads",
            "attention.key_length": "d_kv", "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
            "attention.relative_buckets_count": "relative_attention_num_buckets",
        },
        finish=_finish_t5, **more,
    )  # fmt: skip


def _deepseek(model_type: str, more: Mapping[str, str], scoring: int, **variant: Any) -> GgufArchitecture:
    return GgufArchitecture(
        model_type, _OUTSIDE, _LAYER_PREFIX,
        {
            **_NORMS, **_MLP, **_EXPERTS, **more, "attn_q": "self_attn.q_proj", "attn_q_a": "self_attn.q_a_proj",
            "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj",
            "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm",
            "attn_k_b": "self_attn.kv_b_proj", "attn_v_b": "self_attn.kv_b_proj", "attn_kv_b": "self_attn.kv_b_proj",
            "attn_output": "self_attn.o_proj", "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
            "ffn_up_shexp": "mlp.shared_experts.up_proj", "ffn_down_shexp": "mlp.shared_experts.down_proj",
        },
        {
            **{key: value for key, value in _RMS.items() if key != "attention.head_count_kv"},
            "attention.kv_lora_rank": "kv_lora_rank", "attention.q_lora_rank": "q_lora_rank",
            "rope.dimension_count": "qk_rope_head_dim", "expert_count": "n_routed_experts",
            "expert_used_count": "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
            "expert_feed_forward_length": "moe_intermediate_size",
            "leading_dense_block_count": "first_k_dense_replace", "expert_weights_scale": "routed_scaling_factor",
            "expert_group_count": "n_group", "expert_group_used_count": "topk_group",
        },
        dict.fromkeys(("attn_k_b", "attn_v_b"), JOINED), {"norm_topk_prob": False}, _finish_deepseek,
        {"expert_weights_norm": "norm_topk_prob"}, constants={"expert_gating_func": scoring},
        more_metadata=_latent_widths, **variant,
    )  # fmt: skip


ARCHITECTURES: dict[str, GgufArchitecture] = {
    "llama": GgufArchitecture(
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _PERMUTED, present=_BIASES
    ),
    "mixtral": GgufArchitecture(
        "mixtral", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_NORMS, **_EXPERTS},
        {**_RMS, "expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}, _PERMUTED,
        {"sliding_window": None}, _finish_qwen_moe, stored_name="llama",
        applies=lambda file: (file.number("llama.expert_count") or 0) > 0,
    ),
    "mistral": GgufArchitecture(
        "mistral", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _PERMUTED, stored_name="llama",
        applies=lambda file: (file.number("llama.attention.sliding_window") or 0) > 0,
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
        _OFFSET_NORMS, {"sliding_window": 4096}, _finish_gemma2, has_window_period=True,
    ),
    "gemma3": GgufArchitecture(
        "gemma3_text", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, **_GEMMA_NORMS, **_QK_NORMS},
        {
            **_RMS, **_HEAD_DIM, "attention.sliding_window": "sliding_window",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        _OFFSET_NORMS, {}, _finish_gemma3, has_window_period=True,
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
        dict.fromkeys(("attn_qkv", "attn_output", "ffn_up", "ffn_down"), TRANSPOSED), {"n_positions": 1024},
        more_metadata=_feed_forward_length,
    ),
    "starcoder2": GgufArchitecture(
        "starcoder2", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        {**_SHAPE, "attention.layer_norm_epsilon": "norm_epsilon"}, {}, {"sliding_window": None},
        present={"use_bias": _QUERY_BIAS},
    ),
    "stablelm": GgufArchitecture(
        "stablelm", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps"},
        finish=_finish_stablelm, flags={"use_parallel_residual": "use_parallel_residual"},
        present={"use_qkv_bias": _QUERY_BIAS},
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
        _GRANITE_KEYS, _PERMUTED, present=_BIASES,
    ),
    "smollm3": GgufArchitecture(
        "smollm3", _OUTSIDE, _LAYER_PREFIX, _LLAMA, _RMS, _PERMUTED, finish=_finish_smollm3
    ),
    "command-r": GgufArchitecture(
        "cohere", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, **_QK_NORMS, "attn_norm": "input_layernorm"},
        {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale"},
        present={"use_qk_norm": "blk.0.attn_q_norm.weight"},
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
        {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps"}, {"attn_qkv": BY_HEAD},
        {"use_parallel_residual": True}, flags={"use_parallel_residual": "use_parallel_residual"},
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
        {"attn_qkv": BY_HEAD}, more_metadata=_feed_forward_length,
    ),
    "lfm2": GgufArchitecture(
        "lfm2", _LFM2_OUTSIDE, _LAYER_PREFIX, _LFM2_LAYER, _LFM2_KEYS, {"shortconv.conv": UNSQUEEZED},
        {"block_auto_adjust_ff_dim": False}, _finish_lfm2, more_metadata=_keys_by_layer,
    ),
    "lfm2moe": GgufArchitecture(
        "lfm2_moe", _LFM2_OUTSIDE, _LAYER_PREFIX,
        {
            **_LFM2_LAYER, "ffn_gate_inp": "feed_forward.gate", "exp_probs_b": "feed_forward.expert_bias",
            "ffn_gate_exps": "feed_forward.experts.gate_up_proj", "ffn_up_exps": "feed_forward.experts.gate_up_proj",
            "ffn_down_exps": "feed_forward.experts.down_proj",
        },
        {
            **_LFM2_KEYS, "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
            "expert_feed_forward_length": "moe_intermediate_size", "leading_dense_block_count": "num_dense_layers",
        },
        {"shortconv.conv": UNSQUEEZED}, {}, _finish_lfm2, constants={"expert_gating_func": _SIGMOID},
        more_metadata=_keys_by_layer,
    ),
    "phi2": GgufArchitecture(
        "phi", {**_OUTSIDE, "output_norm": "model.final_layernorm"}, _LAYER_PREFIX,
        {
            **_ATTENTION, "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2",
            "attn_norm": "input_layernorm",
        },
        {**_SHAPE, "attention.layer_norm_epsilon": "layer_norm_eps"},
    ),
    "cohere2": GgufArchitecture(
        "cohere2", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_MLP, "attn_norm": "input_layernorm"},
        {
            **_SHAPE, **_HEAD_DIM, "attention.layer_norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale",
            "attention.sliding_window": "sliding_window",
        },
        finish=_finish_cohere2,
    ),
    "glm4": GgufArchitecture(
        "glm4", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
            "post_attention_norm": "post_self_attn_layernorm", "ffn_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
        },
        {**_RMS, **_HEAD_DIM}, finish=_finish_head_dim, present={"attention_bias": _QUERY_BIAS},
    ),
    "chatglm": GgufArchitecture(
        "glm", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj", **_NORMS},
        {**_RMS, **_HEAD_DIM}, finish=_finish_head_dim, present={"attention_bias": _QUERY_BIAS},
    ),
    "nemotron": GgufArchitecture(
        "nemotron", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        {**_SHAPE, **_HEAD_DIM, "attention.layer_norm_epsilon": "norm_eps"},
        dict.fromkeys(("output_norm", *_NORMS), MINUS_ONE), {"hidden_act": "relu2"}, present=_BIASES,
    ),
    "exaone": GgufArchitecture(
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, present=_BIASES
    ),
    "exaone4": GgufArchitecture(
        "exaone4", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, **_MLP, **_QK_NORMS, "post_attention_norm": "post_attention_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        },
        {**_RMS, **_HEAD_DIM, "attention.sliding_window": "sliding_window"}, finish=_finish_exaone4,
    ),
    "internlm2": GgufArchitecture(
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _PERMUTED, present=_BIASES
    ),
    "minicpm": GgufArchitecture(
        "granite", _OUTSIDE, _LAYER_PREFIX, _LLAMA,
        {
            **_RMS, "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
        _PERMUTED, finish=_finish_minicpm, present=_BIASES,
    ),
    "olmo": GgufArchitecture(
        "olmo", {"token_embd": "model.embed_tokens", "output": "lm_head"}, _LAYER_PREFIX, {**_ATTENTION, **_MLP},
        {**_SHAPE, "attention.clamp_kqv": "clip_qkv"}, _PERMUTED,
        constants={"attention.layer_norm_epsilon": 1e-5},
    ),
    "olmoe": GgufArchitecture(
        "olmoe", _OUTSIDE, _LAYER_PREFIX, {**_ATTENTION, **_QK_NORMS, **_NORMS, **_EXPERTS},
        {**_RMS, "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"},
        defaults={"norm_topk_prob": False},
    ),
    "ernie4_5": GgufArchitecture(
        "ernie4_5", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, finish=_finish_head_dim
    ),
    "seed_oss": GgufArchitecture(
        "seed_oss", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, **_MLP, "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
        },
        {**_RMS, **_HEAD_DIM},
        present={"attention_bias": _QUERY_BIAS, "attention_out_bias": "blk.0.attn_output.bias"},
    ),
    "hunyuan-dense": GgufArchitecture(
        "hunyuan_v1_dense", _OUTSIDE, _LAYER_PREFIX,
        {**_LLAMA, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
        {**_RMS, **_HEAD_DIM}, finish=_finish_head_dim,
    ),
    "arcee": GgufArchitecture(
        "arcee", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        {**_RMS, **_HEAD_DIM}, _PERMUTED, {"hidden_act": "relu2"}, present=_BIASES,
    ),
    "granitemoe": GgufArchitecture(
        "granitemoe", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, **_NORMS, "ffn_gate_inp": "block_sparse_moe.router",
            "ffn_gate_exps": "block_sparse_moe.experts.gate_up_proj",
            "ffn_up_exps": "block_sparse_moe.experts.gate_up_proj",
            "ffn_down_exps": "block_sparse_moe.experts.down_proj",
        },
        {**_GRANITE_KEYS, "expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}, _PERMUTED,
    ),
    "deepseek2": _deepseek("deepseek_v2", {}, _SOFTMAX),
    "deepseek3": _deepseek(
        "deepseek_v3", {"exp_probs_b": "mlp.gate.e_score_correction_bias"}, _SIGMOID, stored_name="deepseek2",
        applies=lambda file: file.number("deepseek2.expert_gating_func") == _SIGMOID,
    ),
    "t5": _t5("t5", False),
    "umt5": _t5(
        "umt5", True, stored_name="t5", applies=lambda file: "enc.blk.1.attn_rel_b.weight" in file.tensors,
    ),
    "t5v1.1": _t5("t5", True, stored_name="t5", applies=lambda file: "enc.blk.0.ffn_gate.weight" in file.tensors),
    "falcon": _falcon(
        {"attn_norm": "input_layernorm"}, {}, constants={"attention.head_count_kv": 1},
        variant={"new_decoder_architecture": False},
    ),
    "falcon40b": _falcon(
        {"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"}, {"attn_qkv": BY_GROUP}, stored_name="falcon",
        applies=lambda file: "blk.0.attn_norm_2.weight" in file.tensors, variant={"new_decoder_architecture": True},
    ),
    "mamba": GgufArchitecture(
        "mamba", {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f", "output": "lm_head"},
        "backbone.layers.{n}.",
        {
            "attn_norm": "norm", "ssm_in": "mixer.in_proj", "ssm_conv1d": "mixer.conv1d", "ssm_x": "mixer.x_proj",
            "ssm_dt": "mixer.dt_proj", "ssm_a": "mixer.A_log", "ssm_d": "mixer.D", "ssm_out": "mixer.out_proj",
        },
        {
            "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "ssm.conv_kernel": "conv_kernel",
            "ssm.inner_size": "intermediate_size", "ssm.state_size": "state_size",
            "ssm.time_step_rank": "time_step_rank", "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
        },
        {"ssm_conv1d": UNSQUEEZED, "ssm_a": LOG_NEGATED}, finish=_finish_mamba,
        present={"use_bias": "blk.0.ssm_in.bias", "use_conv_bias": "blk.0.ssm_conv1d.bias"},
        constants={"attention.head_count": 0, "feed_forward_length": 0},
    ),
    "gpt-oss": GgufArchitecture(
        "gpt_oss", _OUTSIDE, _LAYER_PREFIX,
        {
            **_ATTENTION, "attn_sinks": "self_attn.sinks", "attn_norm": "input_layernorm",
            "post_attention_norm": "post_attention_layernorm", **_EXPERTS, "ffn_gate_inp": "mlp.router",
        },
        {
            **_RMS, **_HEAD_DIM, "attention.sliding_window": "sliding_window", "expert_count": "num_local_experts",
            "expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "intermediate_size",
        },
        dict.fromkeys(("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"), INTERLEAVED), {}, _finish_gpt_oss,
        has_window_period=True,
    ),
}  # fmt: skip
"""By llama.cpp's name, or by one of their own for Mixtral, the large Falcon, DeepSeek 3, T5 1.1 and UMT5. Of entries of
one model type the first one is written.
"""
_WRITTEN_AS = {"mistral": "llama"}
"""Model types whose models without a window have the entry of another type."""


def described_type(model_type: str) -> str:
    """Return the model type whose entry describes models of a type."""
    return _WRITTEN_AS.get(model_type, model_type)


def architecture_of(file: GgufFile) -> GgufArchitecture:
    """Return the entry of a file's architecture. Raises UnknownArchitectureError."""
    name = file.architecture
    variants = (known for known in ARCHITECTURES.values() if known.stored_name == name)
    found = next((known for known in variants if known.applies(file)), ARCHITECTURES.get(name))
    if found is None:
        raise unsupported_error(file, unsupported_reason(name))
    return found


def written_architecture(config: PreTrainedConfig) -> str | None:
    """Return the name of the entry by which a model with transformers' config is written; None without one."""
    kind = str(config.model_type)
    if not getattr(config, "sliding_window", None):
        kind = described_type(kind)
    return next(
        (
            name for name, known in ARCHITECTURES.items()
            if known.model_type == kind and known.layer
            and all(bool(getattr(config, key)) == value for key, value in known.variant.items())
        ), None,
    )  # fmt: skip


_ENCODERS = frozenset({
    "bert", "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "eurobert",
    "gemma-embedding", "llama-embed", "t5encoder",
})  # fmt: skip
"""Architectures of llama.cpp that turn a text into one vector."""
_DIFFUSION = frozenset({"dream", "llada", "llada-moe"})
"""Architectures of llama.cpp that fill in masked tokens."""
_NOT_IN_TRANSFORMERS = frozenset({
    "arctic", "arwkv7", "baichuan", "codeshell", "deci", "grok", "grovemoe", "jais", "maincoder",
    "openelm", "orion", "pangu-embedded", "plamo", "plamo2", "plamo3", "plm", "qwen", "refact", "rwkv6",
    "rwkv6qwen2", "rwkv7", "smallthinker", "xverse",
})  # fmt: skip
"""Architectures of llama.cpp that transformers does not have, or only with code from the hub."""


def unsupported_reason(name: str) -> str:
    """Return why an architecture of llama.cpp that is not in ARCHITECTURES cannot be used, as a clause."""
    if name in _ENCODERS:
        return tr("“{name}” is an encoder, which turns a text into numbers and writes none").format(name=name)
    if name in _DIFFUSION:
        return tr("“{name}” fills in masked tokens in any order instead of writing one after the other").format(
            name=name
        )
    if name in ("clip", "wavtokenizer-dec"):
        return tr("“{name}” is a part of a model for pictures or sounds").format(name=name)
    if name in _NOT_IN_TRANSFORMERS:
        return tr("transformers has no architecture “{name}”").format(name=name)
    if name == "gemma3n":
        return tr("the stacked projections of “{name}” files are not mapped to transformers' modules").format(name=name)
    return tr("its architecture “{name}” is none of those").format(name=name[:80])


def invalid_value_error(file: GgufFile, key: str, value: object, expected: str) -> ConfigInvalidError:
    """Return the error of a metadata value that no model can have."""
    return ConfigInvalidError(
        tr("The metadata of {file} are invalid: {key} is {value}, but must be {expected}.").format(
            file=file.files[0].name, key=key, value=value, expected=expected
        ),
        tr("Copy or download the file again."),
    )


def missing_key_error(file: GgufFile, key: str) -> ConfigInvalidError:
    """Return the error of metadata that are incomplete."""
    return ConfigInvalidError(
        tr("The metadata of {file} do not contain {key}.").format(file=file.files[0].name, key=key),
        tr("Copy or download the file again."),
    )


def whole_number(config: Config, key: str) -> int:
    """Return a positive whole number of a config. Raises ConfigInvalidError."""
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise ConfigInvalidError(
            tr("The metadata do not contain {key}.").format(key=key), tr("Copy or download the file again.")
        )
    return value


def unsupported_error(file: GgufFile, reason: str) -> UnknownArchitectureError:
    """Return the error of a file that cannot be used, with the reason as a clause."""
    known = join_names(sorted(ARCHITECTURES))
    return UnknownArchitectureError(
        tr("{file} cannot be used: {reason}.").format(file=file.files[0].name, reason=reason),
        tr("Choose the model in safetensors format, or a GGUF file of one of these architectures: {known}.").format(
            known=known
        ),
    )
