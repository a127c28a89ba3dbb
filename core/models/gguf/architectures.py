"""Meaning of llama.cpp's metadata and tensor names in transformers, one entry per architecture.

A GGUF file has no config.json: `transformers_config` makes its content from the metadata, and `parameter_names` says
which tensor is which parameter, with the operation that undoes what llama.cpp's converter did to it. Importing this
module does not import torch. Names and keys: llama.cpp's gguf-py (constants.py, tensor_mapping.py) and its converter
convert_hf_to_gguf.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from core.errors import ConfigInvalidError, UnknownArchitectureError
from core.models.gguf.gguf_file import GgufFile, TextArray
from resources.language import tr

Config: TypeAlias = "dict[str, object]"
"""The content of a config.json."""

ROWS_OF_Q, ROWS_OF_K, MINUS_ONE, BY_HEAD, BY_GROUP, TRANSPOSED, UNSQUEEZED, LOG_NEGATED, INTERLEAVED, JOINED = (
    "rows of queries", "rows of keys", "minus one", "by head", "by group", "transposed", "unsqueezed", "log negated",
    "interleaved", "joined by head",
)  # fmt: skip
"""Operations on a tensor of the file: reorder the rows of queries or of keys (llama.cpp rotates neighbouring numbers of
a head, transformers its halves), subtract one from a norm, reorder the rows of queries, keys and values from by kind to
by head or by group of heads with the same keys (Falcon 40B), transpose a matrix (GPT-2), insert a dimension
(convolutions), take the logarithm of the negated numbers (Mamba's A), transpose each expert's matrix and interleave the
outputs of its parts (GPT-OSS), join keys and values head by head (DeepSeek, whose keys are transposed)."""
ROW_ORDERS = (ROWS_OF_Q, ROWS_OF_K, BY_HEAD, BY_GROUP)
"""Operations that apply to a bias too."""
_BARE = (".sinks", ".expert_bias", ".e_score_correction_bias", ".A_log", ".D")
"""Parameters of transformers that are not the weight or the bias of a module."""
WITHOUT_SUFFIX = ("ssm_a", "ssm_d")
"""Tensors whose names do not end with `.weight`."""

_IGNORED = re.compile(
    r"^(rope_freqs|rope_factors_(long|short)|blk\.\d+\.rope_freqs|blk\.\d+\.attn_rot_embd"
    r"|dec\.blk\.\d+\.cross_attn_rel_b)\.weight$"
)
"""Tensors that the config already contains, or that no implementation reads."""
_LAYER = re.compile(r"^(?P<stack>(?:enc\.|dec\.)?)blk\.(?P<number>\d+)\.(?P<inside>.+)$")
"""Names of tensors inside a layer, of an encoder's or a decoder's stack where there are two."""
_SIGMOID = 2
"""Value of `expert_gating_func`: experts are scored by sigmoids (DeepSeek 3), not by a softmax (DeepSeek 2)."""
_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0


class Target(NamedTuple):
    """The parameter that a tensor of the file belongs to."""

    name: str
    operation: str = ""
    part: str = ""
    """`gate` or `up` for experts, `key` or `value` for latent attention, whose tensors are two in the file and one in
    transformers; else empty.
    """


@dataclass(frozen=True)
class GgufArchitecture:
    """How transformers represents an architecture of llama.cpp."""

    model_type: str
    outside: Mapping[str, str]
    """Names of the tensors outside the layers, without `.weight` or `.bias`."""
    layer: str
    """Prefix of a layer's parameters, with `{n}` for its number."""
    inside: Mapping[str, str]
    """Names of the tensors of a layer; those of an encoder begin with `enc.`, those of its decoder with `dec.`."""
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
_PARTS = {"ffn_gate_exps": "gate", "ffn_up_exps": "up", "attn_k_b": "key", "attn_v_b": "value"}
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
    kinds = file.metadata.get(f"{file.architecture}.attention.head_count_kv")
    if not isinstance(kinds, memoryview) or not len(kinds):
        raise _unsupported(file, tr("it does not say which layers are convolutions"))
    counts = [int(count) for count in kinds]
    config["num_key_value_heads"] = max(counts)
    config["layer_types"] = ["full_attention" if count else "conv" for count in counts]
    config["conv_bias"] = any(name.endswith("shortconv.in_proj.bias") for name in file.tensors)


def _finish_cohere2(file: GgufFile, config: Config) -> None:
    config["layer_types"] = _every_fourth_full(config)


def _every_fourth_full(config: Config) -> list[str]:
    layers = range(1, _whole(config, "num_hidden_layers") + 1)
    return ["sliding_attention" if number % 4 else "full_attention" for number in layers]


def _finish_exaone4(file: GgufFile, config: Config) -> None:
    """The large model has windows, except in every fourth layer; the small one has none (its report, section 2)."""
    has_windows = _whole(config, "num_hidden_layers") == 64
    config["layer_types"] = _every_fourth_full(config)
    if not has_windows:
        config["sliding_window"] = None
        config["layer_types"] = ["full_attention"] * _whole(config, "num_hidden_layers")


def _finish_minicpm(file: GgufFile, config: Config) -> None:
    """MiniCPM is Granite's architecture with other factors; older files leave them to llama.cpp's defaults."""
    layers, width = _whole(config, "num_hidden_layers"), _whole(config, "hidden_size")
    config.setdefault("embedding_multiplier", 12.0)
    config.setdefault("residual_multiplier", 1.4 / layers**0.5)
    config.setdefault("logits_scaling", width / 256)
    config["attention_multiplier"] = (width // _whole(config, "num_attention_heads")) ** -0.5
    _finish_llama(file, config)


def _finish_seed_oss(file: GgufFile, config: Config) -> None:
    config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    config["attention_out_bias"] = "blk.0.attn_output.bias" in file.tensors


def _finish_head_dim(file: GgufFile, config: Config) -> None:
    config.setdefault("head_dim", _whole(config, "hidden_size") // _whole(config, "num_attention_heads"))


def _finish_glm(file: GgufFile, config: Config) -> None:
    config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    _finish_head_dim(file, config)


def _finish_falcon(file: GgufFile, config: Config) -> None:
    config["new_decoder_architecture"] = "blk.0.attn_norm_2.weight" in file.tensors
    config["bias"] = "blk.0.attn_qkv.bias" in file.tensors
    config["multi_query"] = config.get("num_kv_heads") == 1
    if not config["new_decoder_architecture"] and not config["multi_query"]:
        raise _unsupported(file, tr("its positions are biases of attention (ALiBi), which files do not describe"))


def _finish_mamba(file: GgufFile, config: Config) -> None:
    config.pop("rope_parameters", None)
    config["expand"] = _whole(config, "intermediate_size") // _whole(config, "hidden_size")
    config["use_bias"] = "blk.0.ssm_in.bias" in file.tensors
    config["use_conv_bias"] = "blk.0.ssm_conv1d.bias" in file.tensors


def _finish_gpt_oss(file: GgufFile, config: Config) -> None:
    layers = range(_whole(config, "num_hidden_layers"))
    config["layer_types"] = ["full_attention" if number % 2 else "sliding_attention" for number in layers]
    rope = config["rope_parameters"]
    if isinstance(rope, dict) and rope["rope_type"] == "yarn":
        rope["truncate"] = False


def _finish_deepseek(file: GgufFile, config: Config) -> None:
    """Read the widths of latent attention; newer files describe the one head that all heads share, and these apart."""
    prefix = file.architecture
    rotated = _whole(config, "qk_rope_head_dim")
    for name, key in (("key_length", "qk_head_dim"), ("value_length", "v_head_dim")):
        value = file.number(f"{prefix}.attention.{name}_mla") or file.number(f"{prefix}.attention.{name}")
        if not isinstance(value, int) or value < 1:
            raise _missing(file, f"{prefix}.attention.{name}")
        config[key] = value
    config["qk_nope_head_dim"] = _whole(config, "qk_head_dim") - rotated
    if _whole(config, "qk_head_dim") <= rotated:
        raise _invalid_value(
            file, f"{prefix}.rope.dimension_count", rotated,
            tr("less than {width}, the width of a head").format(width=config["qk_head_dim"]),
        )  # fmt: skip
    config["head_dim"] = rotated
    config["num_key_value_heads"] = config["num_attention_heads"]
    config["norm_topk_prob"] = bool(file.metadata.get(f"{prefix}.expert_weights_norm", False))
    if config.get("q_lora_rank") is None:
        config["q_lora_rank"] = None
    if config["model_type"] == "deepseek_v2":
        config["topk_method"] = "group_limited_greedy" if config.get("n_group") else "greedy"
    rope = config["rope_parameters"]
    if isinstance(rope, dict):
        rope.pop("partial_rotary_factor", None)
        factor = file.number(f"{prefix}.rope.scaling.yarn_log_multiplier")
        if rope["rope_type"] == "yarn" and factor:
            rope["mscale"] = rope["mscale_all_dim"] = 10 * factor


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


def _falcon(norms: Mapping[str, str], operations: Mapping[str, str]) -> GgufArchitecture:
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
    )  # fmt: skip


def _t5(model_type: str, is_gated: bool) -> GgufArchitecture:
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
        finish=_finish_t5,
    )  # fmt: skip


def _deepseek(model_type: str, more: Mapping[str, str]) -> GgufArchitecture:
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
        dict.fromkeys(("attn_k_b", "attn_v_b"), JOINED), {}, _finish_deepseek,
    )  # fmt: skip


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
        _GRANITE_KEYS, _PERMUTED, finish=_finish_llama,
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
        "lfm2", _LFM2_OUTSIDE, _LAYER_PREFIX, _LFM2_LAYER, _LFM2_KEYS, {"shortconv.conv": UNSQUEEZED},
        {"block_auto_adjust_ff_dim": False}, _finish_lfm2,
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
        {"shortconv.conv": UNSQUEEZED}, {}, _finish_lfm2,
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
        {**_RMS, **_HEAD_DIM}, finish=_finish_glm,
    ),
    "chatglm": GgufArchitecture(
        "glm", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj", **_NORMS},
        {**_RMS, **_HEAD_DIM}, finish=_finish_glm,
    ),
    "nemotron": GgufArchitecture(
        "nemotron", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        {**_SHAPE, **_HEAD_DIM, "attention.layer_norm_epsilon": "norm_eps"},
        dict.fromkeys(("output_norm", *_NORMS), MINUS_ONE), {"hidden_act": "relu2"}, _finish_llama,
    ),
    "exaone": GgufArchitecture(
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, finish=_finish_llama
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
        "llama", _OUTSIDE, _LAYER_PREFIX, _LLAMA, {**_RMS, **_HEAD_DIM}, _PERMUTED, finish=_finish_llama
    ),
    "minicpm": GgufArchitecture(
        "granite", _OUTSIDE, _LAYER_PREFIX, _LLAMA,
        {
            **_RMS, "embedding_scale": "embedding_multiplier", "residual_scale": "residual_multiplier",
            "logit_scale": "logits_scaling",
        },
        _PERMUTED, finish=_finish_minicpm,
    ),
    "olmo": GgufArchitecture(
        "olmo", {"token_embd": "model.embed_tokens", "output": "lm_head"}, _LAYER_PREFIX, {**_ATTENTION, **_MLP},
        {**_SHAPE, "attention.clamp_kqv": "clip_qkv"}, _PERMUTED,
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
        {**_RMS, **_HEAD_DIM}, finish=_finish_seed_oss,
    ),
    "hunyuan-dense": GgufArchitecture(
        "hunyuan_v1_dense", _OUTSIDE, _LAYER_PREFIX,
        {**_LLAMA, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
        {**_RMS, **_HEAD_DIM}, finish=_finish_head_dim,
    ),
    "arcee": GgufArchitecture(
        "arcee", _OUTSIDE, _LAYER_PREFIX,
        {**_ATTENTION, **_NORMS, "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        {**_RMS, **_HEAD_DIM}, _PERMUTED, {"hidden_act": "relu2"}, _finish_llama,
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
    "deepseek2": _deepseek("deepseek_v2", {}),
    "deepseek3": _deepseek("deepseek_v3", {"exp_probs_b": "mlp.gate.e_score_correction_bias"}),
    "t5": _t5("t5", False),
    "t5v1.1": _t5("t5", True),
    "umt5": _t5("umt5", True),
    "falcon": _falcon({"attn_norm": "input_layernorm"}, {}),
    "falcon40b": _falcon({"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"}, {"attn_qkv": BY_GROUP}),
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
    ),
}  # fmt: skip
"""By llama.cpp's name; Mixtral, the large Falcon, DeepSeek 3, T5 1.1 and UMT5 have entries of their own here, though
llama.cpp calls them llama, falcon, deepseek2 and t5.
"""


def architecture_of(file: GgufFile) -> GgufArchitecture:
    """Return the entry of a file's architecture. Raises UnknownArchitectureError."""
    name = file.architecture
    if name == "llama" and (file.number("llama.expert_count") or 0) > 0:
        name = "mixtral"
    elif name == "falcon" and "blk.0.attn_norm_2.weight" in file.tensors:
        name = "falcon40b"
    elif name == "deepseek2" and file.number("deepseek2.expert_gating_func") == _SIGMOID:
        name = "deepseek3"
    elif name == "t5" and "enc.blk.1.attn_rel_b.weight" in file.tensors:
        name = "umt5"
    elif name == "t5" and "enc.blk.0.ffn_gate.weight" in file.tensors:
        name = "t5v1.1"
    found = ARCHITECTURES.get(name)
    if found is None:
        raise _unsupported(file, unsupported_reason(name))
    return found


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
        value = _checked_number(file, f"{prefix}.{key}")
        if value is not None:
            config[name] = value
        elif key in _REQUIRED:
            raise _missing(file, f"{prefix}.{key}")
    if config.get("sliding_window") == 0:
        config["sliding_window"] = None
    _check_layers(file)
    _check_heads(file, config)
    words = file.tensors.get("token_embd.weight")
    if words is None or len(words.shape) != 2:
        raise ConfigInvalidError(
            tr("{file} contains no token embeddings.").format(file=file.files[0].name),
            tr("Choose a language model; adapters and projectors are not models."),
        )
    config["vocab_size"] = words.shape[0]
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, TextArray) and len(tokens) > words.shape[0]:
        raise ConfigInvalidError(
            tr("The vocabulary of {file} has {tokens:,} tokens, but its embeddings only {rows:,}.").format(
                file=file.files[0].name, tokens=len(tokens), rows=words.shape[0]
            ),
            tr("Copy or download the file again."),
        )
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
    there: dict[str, int] = {}
    for name in file.tensors:
        if found := _LAYER.match(name):
            there[found["stack"]] = max(there.get(found["stack"], 0), 1 + int(found["number"]))
    counted = file.number(f"{file.architecture}.block_count")
    stated = {stack: counted for stack in there or ("",)}
    if "dec." in stated:
        stated["dec."] = file.number(f"{file.architecture}.decoder_block_count", counted)
    for stack, number in stated.items():
        if number != there.get(stack, 0):
            raise ConfigInvalidError(
                tr("{file} gives {stated} as its number of layers, but contains {contained}.").format(
                    file=file.files[0].name, stated=number, contained=there.get(stack, 0)
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
    if kind in WITHOUT_SUFFIX:
        stem, kind = tensor, ""
    elif kind not in ("weight", "bias"):
        return None
    layer = _LAYER.match(stem)
    inside = stem if layer is None else layer["stack"] + layer["inside"]
    name = (known.outside if layer is None else known.inside).get(inside)
    if name is None:
        return None
    operation = known.operations.get(inside, "")
    if kind == "bias" and operation not in (*ROW_ORDERS, INTERLEAVED):
        operation = ""
    whole = name if layer is None else (known.layer + name).format(n=layer["number"])
    if inside.endswith("_exps"):
        whole += "_bias" if kind == "bias" else ""
    elif kind and not name.endswith(_BARE):
        whole += f".{kind}"
    return Target(whole, operation, _PARTS.get(inside, ""))


_REQUIRED = ("block_count", "embedding_length", "attention.head_count")
"""Metadata without which an architecture cannot be built; transformers would take its own default values."""
_MAY_BE_ZERO = ("leading_dense_block_count", "attention.sliding_window", "expert_shared_count")
_FLOATS = ("epsilon", "scale", "softcapping", "clamp_kqv")
"""Endings of keys whose values are no whole numbers."""


def _checked_number(file: GgufFile, key: str) -> int | float | None:
    """Return a number of the shape, or None without one; of an array with one value per layer, the value that all
    layers share. Raises ConfigInvalidError for a value that no model can have.
    """
    value = file.metadata.get(key)
    if isinstance(value, memoryview):
        values = set(value)
        if len(values) != 1:
            raise _invalid_value(file, key, tr("a list of different numbers"), tr("the same number for all layers"))
        (value,) = values
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _invalid_value(file, key, tr("not a number"), tr("a number"))
    if key.endswith(_FLOATS):
        if not math.isfinite(value) or (key.endswith("epsilon") and value < 0):
            raise _invalid_value(file, key, value, tr("a finite number of at least 0"))
        return value
    if not math.isfinite(value) or value != int(value) or value < (0 if key.endswith(_MAY_BE_ZERO) else 1):
        raise _invalid_value(file, key, value, tr("a whole number of at least 1"))
    return int(value)


def _check_heads(file: GgufFile, config: Config) -> None:
    """Check that numbers of heads divide what they split, and that rotated numbers are part of a head.

    Raises ConfigInvalidError.
    """
    prefix = file.architecture
    heads = file.number(f"{prefix}.attention.head_count")
    hidden, kv_heads = file.number(f"{prefix}.embedding_length"), file.number(f"{prefix}.attention.head_count_kv")
    if not isinstance(heads, int) or not isinstance(hidden, int) or heads < 1:
        return
    width = file.number(f"{prefix}.attention.key_length")
    if width is None:
        if hidden % heads:
            raise _invalid_value(
                file, f"{prefix}.attention.head_count", heads,
                tr("a divisor of {key} ({value})").format(key=f"{prefix}.embedding_length", value=hidden),
            )  # fmt: skip
        width = hidden // heads
    if isinstance(kv_heads, int) and kv_heads > 0 and heads % kv_heads:
        raise _invalid_value(
            file, f"{prefix}.attention.head_count_kv", kv_heads,
            tr("a divisor of {key} ({value})").format(key=f"{prefix}.attention.head_count", value=heads),
        )  # fmt: skip
    rotated = file.number(f"{prefix}.rope.dimension_count")
    if rotated is not None and not (0 <= rotated <= width and rotated % 2 == 0):
        raise _invalid_value(
            file, f"{prefix}.rope.dimension_count", rotated,
            tr("an even number of at most {width}, the width of a head").format(width=width),
        )  # fmt: skip
    base = file.number(f"{prefix}.rope.freq_base")
    if base is not None and not 0 < base < math.inf:
        raise _invalid_value(file, f"{prefix}.rope.freq_base", base, tr("a number above 0"))


def _invalid_value(file: GgufFile, key: str, value: object, expected: str) -> ConfigInvalidError:
    return ConfigInvalidError(
        tr("The metadata of {file} are invalid: {key} is {value}, but must be {expected}.").format(
            file=file.files[0].name, key=key, value=value, expected=expected
        ),
        tr("Copy or download the file again."),
    )


def _missing(file: GgufFile, key: str) -> ConfigInvalidError:
    return ConfigInvalidError(
        tr("The metadata of {file} do not contain {key}.").format(file=file.files[0].name, key=key),
        tr("Copy or download the file again."),
    )


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
