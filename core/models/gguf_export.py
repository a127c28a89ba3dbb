"""Write a loaded model as a GGUF file, for llama.cpp and the programs that use it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import torch

from core.errors import ModelFileError, ParameterError, UnpackableError
from core.models.gguf.architectures import (
    ARCHITECTURES,
    BY_GROUP,
    BY_HEAD,
    INTERLEAVED,
    LOG_NEGATED,
    MINUS_ONE,
    ROW_ORDERS,
    ROWS_OF_K,
    ROWS_OF_Q,
    TRANSPOSED,
    UNSQUEEZED,
    WITHOUT_SUFFIX,
    GgufArchitecture,
)
from core.models.gguf.gguf_file import FORMATS, MAGIC
from core.models.gguf.gguf_tokenizer import pre_tokenizer_rules
from core.models.loaded_model import check_model
from core.parameter import short_repr
from core.system.file_writing import atomic_write
from resources.language import tr

if TYPE_CHECKING:
    from core.models.loaded_model import LoadedModel

EXPORT_FORMATS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")
_ALIGNMENT = 32
_FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3}
_TYPE_IDS = {fmt.name: fmt.type_id for fmt in FORMATS.values()}
_KEPT_IN_FLOAT32 = (
    "norm", "ffn_gate_inp", "shortconv.conv", "position_embd", "ssm_conv1d", "ssm_a", "attn_sinks", ".bias",
)  # fmt: skip
"""Parts of the names of tensors that llama.cpp expects in float32."""
_PREFIXES = {"mixtral": "llama", "falcon40b": "falcon", "deepseek3": "deepseek2"}
"""llama.cpp's names of architectures with several entries."""
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6


class _TensorEntry(NamedTuple):
    name: str
    shape: tuple[int, ...]
    format_name: str
    data: torch.Tensor
    """uint8 [bytes], as in the file: a packed model's matrices are never all in memory as floats."""


def save_gguf(model: LoadedModel, path: str | Path, weights: str = "Q8_0") -> Path:
    """Write a model with its tokenizer and chat template, with adapters merged into it, its matrices in the format
    `weights` (EXPORT_FORMATS).

    The file appears at `path` once it is complete. Raises ParameterError for an unknown format, or a value that is not
    a loaded model or a path, UnpackableError for an architecture or a tokenizer that cannot be written, and
    ModelFileError if the file cannot be written; a file that was there is then unchanged.
    """
    check_model(model)
    if weights not in EXPORT_FORMATS:
        raise ParameterError(
            tr("“{wish}” is not a format that can be written.").format(wish=str(weights)[:40]),
            tr("Use {names}.").format(names=", ".join(EXPORT_FORMATS)),
            "weights",
        )
    if not isinstance(path, (str, Path)):
        raise ParameterError(
            tr("{value} is not a path.").format(value=short_repr(path)),
            tr("Pass the path of the file to write."),
            "path",
        )
    target = Path(os.path.expanduser(path))
    name, known = _architecture(model)
    try:
        if not target.parent.is_dir():
            raise FileNotFoundError(tr("the folder {folder} does not exist").format(folder=target.parent))
        write_architecture(model, name, known, target, weights)
    except (OSError, ValueError) as error:
        raise ModelFileError(
            tr("{file} cannot be written: {reason}.").format(
                file=target.name or target, reason=getattr(error, "strerror", None) or error
            ),
            tr("Choose a name in an existing folder that you may write to, on a disk with enough free space."),
        ) from error
    return target


def write_architecture(
    model: LoadedModel, name: str, known: GgufArchitecture, target: Path, weights: str
) -> None:  # fmt: skip
    """Write a model as the architecture `name`; several architectures of llama.cpp may have one model type."""
    metadata = {**_shape_metadata(model, name, known, weights), **_tokenizer_metadata(model)}
    entries = list(_entries(model, known, weights))
    with atomic_write(target) as part, part.open("wb") as stream:
        _write(stream, metadata, entries)


def _architecture(model: LoadedModel) -> tuple[str, GgufArchitecture]:
    kind = str(model.config.model_type)
    aliases = {"mistral": "llama"}
    if kind == "falcon" and model.config.new_decoder_architecture:
        return "falcon40b", ARCHITECTURES["falcon40b"]
    for name, known in ARCHITECTURES.items():
        if known.model_type == aliases.get(kind, kind) and known.layer:
            return name, known
    raise UnpackableError(
        tr("{model} has the architecture {kind}, which is not written as GGUF here.").format(
            model=model.name, kind=kind
        ),
        tr("Use llama.cpp's own converter."),
    )


def _shape_metadata(model: LoadedModel, name: str, known: GgufArchitecture, weights: str) -> dict[str, Any]:
    prefix = _PREFIXES.get(name, name)
    config = model.config
    found: dict[str, Any] = {
        "general.architecture": prefix,
        "general.name": model.name,
        "general.file_type": _FILE_TYPES[weights],
        "general.quantization_version": 2,
        f"{prefix}.vocab_size": int(config.vocab_size),
    }
    for key, attribute in known.keys.items():
        value = getattr(config, attribute, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[f"{prefix}.{key}"] = _Float(value) if _is_float_key(key) else int(value)
    found.setdefault(f"{prefix}.context_length", int(model.context or 2048))
    if name == "olmo":
        found["olmo.attention.layer_norm_epsilon"] = _Float(1e-5)
    if name in ("gpt2", "bloom"):
        found.setdefault(f"{name}.feed_forward_length", 4 * int(config.hidden_size))
    heads = int(getattr(config, "num_attention_heads", 0))
    if not heads:
        return found | {f"{prefix}.attention.head_count": 0, f"{prefix}.feed_forward_length": 0}
    width = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    if name == "falcon":
        found["falcon.attention.head_count_kv"] = 1
    if prefix == "deepseek2":
        found |= {
            "deepseek2.attention.head_count_kv": heads, "deepseek2.attention.key_length": int(config.qk_head_dim),
            "deepseek2.attention.value_length": int(config.v_head_dim),
            "deepseek2.expert_weights_norm": bool(config.norm_topk_prob),
            "deepseek2.expert_gating_func": 2 if name == "deepseek3" else 1,
        }  # fmt: skip
    if name == "gpt-oss":
        found["gpt-oss.feed_forward_length"] = found["gpt-oss.expert_feed_forward_length"]
    if name == "lfm2moe":
        found["lfm2moe.expert_gating_func"] = 2
    if name == "minicpm":
        found["minicpm.rope.dimension_count"] = width
    if "attention.key_length" in known.keys:
        found[f"{prefix}.attention.key_length"] = found[f"{prefix}.attention.value_length"] = width
    if name in ("lfm2", "lfm2moe"):
        kinds = config.layer_types
        counts = [config.num_key_value_heads if kind == "full_attention" else 0 for kind in kinds]
        found[f"{name}.attention.head_count_kv"] = counts
    if name == "gptneox":
        found["gptneox.use_parallel_residual"] = bool(config.use_parallel_residual)
    if name == "stablelm":
        found["stablelm.use_parallel_residual"] = bool(config.use_parallel_residual)
    return found | _rope_metadata(model, prefix, width)


def _is_float_key(key: str) -> bool:
    return key.endswith(("epsilon", "scale", "softcapping"))


class _Float(float):
    """A number that is written as float32 even if it is whole."""


def _rope_metadata(model: LoadedModel, prefix: str, width: int) -> dict[str, Any]:
    rope: Mapping[str, Any] | None = getattr(model.config, "rope_parameters", None)
    if not rope:
        return {}
    found: dict[str, Any] = {}
    if "full_attention" in rope:
        found[f"{prefix}.rope.freq_base_swa"] = _Float(rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    assert rope is not None
    found[f"{prefix}.rope.freq_base"] = _Float(rope["rope_theta"])
    found[f"{prefix}.rope.dimension_count"] = int(width * rope.get("partial_rotary_factor", 1.0))
    kind = rope.get("rope_type", "default")
    if kind in ("linear", "yarn"):
        found[f"{prefix}.rope.scaling.type"] = kind
        found[f"{prefix}.rope.scaling.factor"] = _Float(rope["factor"])
        if original := rope.get("original_max_position_embeddings"):
            found[f"{prefix}.rope.scaling.original_context_length"] = int(original)
    elif kind not in ("default", "llama3"):
        raise UnpackableError(
            tr("{model} scales its positions by the rule “{kind}”, which is not written as GGUF here.").format(
                model=model.name, kind=kind
            ),
            tr("Use llama.cpp's own converter."),
        )
    return found


def _entries(model: LoadedModel, known: GgufArchitecture, weights: str) -> Iterable[_TensorEntry]:
    """Yield all tensors by llama.cpp's names and in its order of rows."""
    config = model.config
    heads = int(getattr(config, "num_attention_heads", None) or 1)
    kv_heads = int(getattr(config, "num_key_value_heads", None) or getattr(config, "num_kv_heads", None) or heads)
    rope: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        yield _entry("rope_freqs.weight", _llama3_factors(model), "F32")
    outside = {target: name for name, target in known.outside.items()}
    inside = {target: name for name, target in known.inside.items()}
    prefix, _, _ = known.layer.partition("{n}")
    tied = bool(config.tie_word_embeddings) and not _has_own_head(model)
    seen: set[str] = set()
    for name, values in _weights(model):
        stem, kind = _split_name(name)
        if stem == "lm_head" and tied:
            continue
        if stem.startswith(prefix) and stem not in outside:
            number, _, rest = stem.removeprefix(prefix).partition(".")
            own = inside.get(rest)
            if own is None:
                raise _unknown_weight(model, name)
            operation = known.operations.get(own, "")
            called = f"blk.{number}.{own}" + ("" if own in WITHOUT_SUFFIX else f".{kind}")
            if own in ("ffn_up_exps", "ffn_gate_exps"):
                gate, up = _gate_and_up(values, operation)
                yield _entry(f"blk.{number}.ffn_gate_exps.{kind}", gate, weights)
                yield _entry(f"blk.{number}.ffn_up_exps.{kind}", up, weights)
                continue
        elif stem in outside:
            called, operation = f"{outside[stem]}.{kind}", known.operations.get(outside[stem], "")
        else:
            raise _unknown_weight(model, name)
        if called not in seen:
            seen.add(called)
            if kind == "bias" and operation not in ROW_ORDERS:
                operation = ""
            yield _entry(called, _converted(values, operation, heads, kv_heads), weights)


def _split_name(name: str) -> tuple[str, str]:
    """Split a parameter's name into that of its module, or of itself if it is bare, and `weight` or `bias`."""
    if name.endswith((".expert_bias", ".e_score_correction_bias")):
        return name, "bias"
    stem, _, kind = name.rpartition(".")
    if kind in ("weight", "bias"):
        return stem, kind
    return (name.removesuffix("_bias"), "bias") if name.endswith("_proj_bias") else (name, "weight")


def _gate_and_up(values: torch.Tensor, operation: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Split the joined tensor of experts [experts, outputs, inputs], or their biases."""
    if operation != INTERLEAVED:
        gate, up = values.chunk(2, 1)
        return gate, up
    gate, up = values[..., ::2], values[..., 1::2]
    return (gate.transpose(1, 2), up.transpose(1, 2)) if values.dim() == 3 else (gate, up)


def _has_own_head(model: LoadedModel) -> bool:
    """Return whether adapters change the embedding or the head, which share their weights otherwise."""
    if not model.adapters.active:
        return False
    shared = (model.model.get_input_embeddings(), model.model.get_output_embeddings())
    named = [(name, module) for name, module in model.model.named_modules(remove_duplicate=False) if module in shared]
    one, other = (model.adapters.merged(f"{name}.weight", module, "weight") for name, module in named)
    return not torch.equal(one, other)


def _weights(model: LoadedModel) -> Iterable[tuple[str, torch.Tensor]]:
    """Yield every weight as floats, packed matrices converted, with the effect of adapters."""
    for path, module in model.model.named_modules():
        for own, _ in module.named_parameters(recurse=False):
            name = f"{path}.{own}" if path else own
            yield name, model.adapters.merged(name, module, own)
        for own, buffer in module.named_buffers(recurse=False):
            if own.endswith("_bias") and own not in module._non_persistent_buffers_set:
                yield f"{path}.{own}" if path else own, buffer.float()  # the routers' biases of LFM2-MoE


def _converted(values: torch.Tensor, operation: str, heads: int, kv_heads: int) -> torch.Tensor:
    """Do what llama.cpp's converter does to a tensor."""
    if operation in (ROWS_OF_Q, ROWS_OF_K):
        count = heads if operation == ROWS_OF_Q else kv_heads
        return values.view(count, 2, -1, *values.shape[1:]).transpose(1, 2).reshape(values.shape)
    if operation == BY_HEAD:
        return values.view(heads, 3, -1, *values.shape[1:]).transpose(0, 1).reshape(values.shape)
    if operation == BY_GROUP:
        groups = values.view(kv_heads, heads // kv_heads + 2, -1, *values.shape[1:])
        return torch.cat([part.flatten(0, 2) for part in groups.split((heads // kv_heads, 1, 1), 1)])
    if operation == MINUS_ONE:
        return values + 1
    if operation == LOG_NEGATED:
        return values.exp().neg()
    if operation == INTERLEAVED and values.dim() == 3:
        return values.transpose(1, 2)
    if operation == TRANSPOSED and values.dim() == 2:
        return values.t()
    if operation == UNSQUEEZED:
        return values.squeeze(0) if values.dim() == 2 else values.squeeze(1)
    return values


def _entry(name: str, values: torch.Tensor, weights: str) -> _TensorEntry:
    fits = weights not in QUANTIZERS or values.shape[-1] % 32 == 0
    is_matrix = values.dim() > 1 and not any(part in name for part in _KEPT_IN_FLOAT32)
    chosen = "F32" if not is_matrix else weights if fits else "F16"
    return _TensorEntry(name, tuple(values.shape), chosen, _data(values.contiguous(), chosen))


def quantize_q8_0(values: torch.Tensor) -> torch.Tensor:
    """Return uint8 blocks [n, 34] of floats [n, 32]: a float16 scale and 32 numbers of −127 … 127 each."""
    scales = values.abs().amax(-1, keepdim=True) / 127
    codes = torch.where(scales > 0, values / scales, 0.0).round().to(torch.int8)
    return torch.cat([scales.half().view(torch.uint8), codes.view(torch.uint8)], -1)


def quantize_q4_0(values: torch.Tensor) -> torch.Tensor:
    """Return uint8 blocks [n, 18] of floats [n, 32]: a float16 scale and 32 numbers of −8 … 7, two in a byte.

    The number of largest magnitude becomes −8, as in ggml's reference implementation.
    """
    largest = values.gather(-1, values.abs().argmax(-1, keepdim=True))
    scales = largest / -8
    codes = torch.where(scales != 0, values / scales + 8.5, 8.5).to(torch.int8).clamp(0, 15).to(torch.uint8)
    return torch.cat([scales.half().view(torch.uint8), _half_bytes(codes)], -1)


def quantize_q4_1(values: torch.Tensor) -> torch.Tensor:
    """Return uint8 blocks [n, 20] of floats [n, 32]: float16 scale and minimum, and 32 numbers of 0 … 15."""
    lowest, highest = values.aminmax(dim=-1, keepdim=True)
    scales = (highest - lowest) / 15
    codes = torch.where(scales > 0, (values - lowest) / scales + 0.5, 0.0).clamp(0, 15).to(torch.uint8)
    return torch.cat([scales.half().view(torch.uint8), lowest.half().view(torch.uint8), _half_bytes(codes)], -1)


def _half_bytes(codes: torch.Tensor) -> torch.Tensor:
    """Return the first half of each block in the low four bits, the second half in the high ones."""
    return codes[:, :16] | codes[:, 16:] << 4


QUANTIZERS = {"Q8_0": quantize_q8_0, "Q4_0": quantize_q4_0, "Q4_1": quantize_q4_1}
"""By the name of a format of blocks of 32."""


def _data(values: torch.Tensor, format_name: str) -> torch.Tensor:
    if (quantize := QUANTIZERS.get(format_name)) is not None:
        return quantize(values.reshape(-1, 32)).view(-1)
    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[format_name]
    return values.to(dtype).view(-1).view(torch.uint8)


def _llama3_factors(model: LoadedModel) -> torch.Tensor:
    """Return by what Llama 3's rule divides each frequency."""
    rope = model.config.rope_parameters
    width = int(getattr(model.config, "head_dim", None) or model.config.hidden_size // model.config.num_attention_heads)
    plain = 1.0 / (rope["rope_theta"] ** (torch.arange(0, width, 2).float() / width))
    rotary: Any = model.model.model.rotary_emb
    factors: torch.Tensor = plain / rotary.inv_freq.float().cpu()
    return factors


def _unknown_weight(model: LoadedModel, name: str) -> UnpackableError:
    return UnpackableError(
        tr("{model} has a weight that llama.cpp has no name for: {name}.").format(model=model.name, name=name),
        tr("Use llama.cpp's own converter."),
    )


def _tokenizer_metadata(model: LoadedModel) -> dict[str, Any]:
    """Return the vocabulary, merges and special tokens."""
    tokenizer = model.tokenizer
    if tokenizer is None:
        return {"tokenizer.ggml.model": "no_vocab"}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    written: dict[str, Any] = json.loads(backend.to_str()) if backend is not None else {}
    kind = written.get("model", {}).get("type")
    if kind != "BPE":
        raise UnpackableError(
            tr("{model} has a tokenizer of the kind {kind}; only BPE is written as GGUF here.").format(
                model=model.name, kind=kind or type(tokenizer).__name__
            ),
            tr("Use llama.cpp's own converter."),
        )
    words, kinds = _vocabulary(written, model.vocabulary)
    found: dict[str, Any] = {
        "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.add_bos_token": _begins_with_bos(tokenizer),
    }  # fmt: skip
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in written["model"]["merges"]]
    if written["model"].get("byte_fallback"):
        found |= {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": _scores(words, merges)}
        found["tokenizer.ggml.add_space_prefix"] = "Prepend" in json.dumps(written.get("normalizer")) or (
            (written.get("pre_tokenizer") or {}).get("prepend_scheme") in ("always", "first")
        )
    else:
        found |= {
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.pre": _rule(model, written),
        }  # fmt: skip
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        number = getattr(tokenizer, f"{name}_token_id", None)
        if isinstance(number, int):
            found[f"tokenizer.ggml.{key}_token_id"] = number
    ends = model.generation_config.eos_token_id
    if isinstance(ends, list) and len(ends) > 1:
        found["tokenizer.ggml.eot_token_id"] = next(
            end for end in ends if end != found.get("tokenizer.ggml.eos_token_id")
        )
    if isinstance(template := getattr(tokenizer, "chat_template", None), str):
        found["tokenizer.chat_template"] = template
    return found


def _vocabulary(written: Mapping[str, Any], size: int) -> tuple[list[str], list[int]]:
    by_number = {number: word for word, number in written["model"]["vocab"].items()}
    added = {token["id"]: token for token in written["added_tokens"]}
    unknown = written["model"].get("unk_token")
    words, kinds = [], []
    for number in range(max(size, *by_number, *added, 0) + 1 if not size else size):
        token = added.get(number)
        word = token["content"] if token else by_number.get(number)
        if word is None:
            words.append(f"[PAD{number}]")
            kinds.append(5)
            continue
        words.append(word)
        is_byte = len(word) == 6 and word.startswith("<0x") and written["model"].get("byte_fallback")
        kinds.append(
            _UNKNOWN if word == unknown else _CONTROL if token and token["special"] else _USER_DEFINED if token
            else _BYTE if is_byte else _NORMAL
        )  # fmt: skip
    return words, kinds


def _scores(words: Sequence[str], merges: Sequence[str]) -> list[float]:
    """Return scores that make SentencePiece's rule merge in the order of the list."""
    ranks: dict[str, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair.replace(" ", "", 1), rank)
    return [_Float(-ranks[word]) if word in ranks else _Float(-1e6) for word in words]


def _rule(model: LoadedModel, written: Mapping[str, Any]) -> str:
    rule = pre_tokenizer_rules().get(json.dumps(written.get("pre_tokenizer"), sort_keys=True))
    if rule is None:
        raise UnpackableError(
            tr("The tokenizer of {model} splits words by a rule that llama.cpp has no name for.").format(
                model=model.name
            ),
            tr("Use llama.cpp's own converter."),
        )
    return rule


def _begins_with_bos(tokenizer: Any) -> bool:
    ids = tokenizer("a")["input_ids"]
    return bool(ids) and tokenizer.bos_token_id is not None and ids[0] == tokenizer.bos_token_id


def _write(stream: BinaryIO, metadata: Mapping[str, Any], entries: Sequence[_TensorEntry]) -> None:
    stream.write(MAGIC + struct.pack("<IQQ", 3, len(entries), len(metadata)))
    for key, value in metadata.items():
        stream.write(_text(key) + _value(value))
    offset = 0
    for entry in entries:
        sizes = entry.shape[::-1]
        stream.write(_text(entry.name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        stream.write(struct.pack("<IQ", _TYPE_IDS[entry.format_name], offset))
        offset += -(-len(entry.data) // _ALIGNMENT) * _ALIGNMENT
    stream.write(bytes(-stream.tell() % _ALIGNMENT))
    for entry in entries:
        stream.write(entry.data.numpy().data)
        stream.write(bytes(-stream.tell() % _ALIGNMENT))


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        items = [_value(item) if isinstance(item, (str, float)) else struct.pack("<Ii", _I32, item) for item in value]
        kind = items[0][:4] if items else struct.pack("<I", _STRING)
        return struct.pack("<I", _ARRAY) + kind + struct.pack("<Q", len(items)) + b"".join(item[4:] for item in items)
    if isinstance(value, bool):
        return struct.pack("<IB", _BOOL, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, float):
        return struct.pack("<If", _F32, value)
    return struct.pack("<Ii", _I32, value) if value < 0 else struct.pack("<II", _U32, value)
