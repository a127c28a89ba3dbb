"""Check the values of a config.json before anything is built from them. Does not import torch."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from decodescope.core.errors import ParameterError
from decodescope.core.parameter import display_name
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig
    from transformers.quantizers.base import HfQuantizer

_SIZES = {
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers",
    "hidden_size", "n_embd", "d_model", "intermediate_size", "vocab_size", "max_position_embeddings", "n_positions",
    "num_attention_heads", "n_head", "n_heads", "num_heads", "num_key_value_heads", "head_dim", "d_kv", "d_ff",
}  # fmt: skip
"""Keys with integer values in every model family that has them; lists if layers differ."""
_POSITIVE = {"num_hidden_layers", "n_layer", "n_layers", "hidden_size", "n_embd", "d_model", "vocab_size"}
_FLAGS = {"is_encoder_decoder", "tie_word_embeddings", "use_cache"}
_FLAGS_OF_METHODS = {"load_in_8bit", "load_in_4bit"}
_ATTENTION = {"attn_implementation", "_attn_implementation", "_attn_implementation_internal"}
_CHECKED = _SIZES | _FLAGS | _ATTENTION | {"quantization_config"}
"""Keys whose values are checked whatever their type; of other keys, only whole numbers are checked."""
_OWN_ATTENTION = {"eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4"}
_MAX_SIZE = 2**31
_MAX_LAYERS = 1024
"""Limit used if the weight headers do not give one; the deepest language models have about 130 layers."""
_SHARED_LAYERS = 64
"""This many layers are accepted regardless of the headers, because layers may share weights."""
_MAX_PARTS = 65_536
"""Limit for experts, labels and other parts that become one Python object each."""


def invalid_names_reason(config: Mapping[str, object]) -> str | None:
    """Return what is wrong with the names that a config gives of itself and of other files; None if they are valid."""
    kind, code = config.get("model_type"), config.get("auto_map", {})
    if kind is not None and not isinstance(kind, str):
        return tr("its model_type is {value}, not a name").format(value=_quoted_value(kind))
    if not isinstance(code, dict) or not all(isinstance(name, str | list) for name in code.values()):
        return tr("its auto_map is {value}, not names of classes").format(value=_quoted_value(code))
    if "configuration_files" in config:
        return tr("it refers to other files (configuration_files)")
    return None


def impossible_value_reason(config: Mapping[str, object], tensors: int | None = None) -> str | None:
    """Return a sentence about the first impossible value, or None.

    `tensors` is the number of tensors in the weight headers: each layer has at least one.
    """
    for name, value in _values(config):
        if (type(value) is int or name in _CHECKED) and (problem := _value_problem(name, value, tensors)):
            return problem
    return None


def external_attention_repository(config: Mapping[str, object]) -> str | None:
    """Return the repository whose compiled code would provide the attention; None if it is transformers' own."""
    attention_values = (value for name, value in _values(config) if name in _ATTENTION)
    return next((value for value in attention_values if isinstance(value, str) and "/" in value), None)


def _values(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield every named value, including those of nested configs."""
    for name, value in config.items():
        yield name, value
        if isinstance(value, dict):
            yield from _values(value)


def _value_problem(name: str, value: object, tensors: int | None) -> str | None:
    if name in _ATTENTION:
        return _attention_problem(name, value)
    if name in _FLAGS and not isinstance(value, bool | None):
        return tr("its {name} is {value}, which is neither true nor false").format(
            name=name, value=_quoted_value(value)
        )
    if name == "quantization_config" and value is not None and not _names_method(value):
        return tr("its quantization_config is {value} and names no method (quant_method)").format(
            value=_quoted_value(value)
        )
    if name in _SIZES and value is not None:
        return next((_size_problem(name, size) for size in _items(value) if _size_problem(name, size)), None) or (
            _count_problem(name, value, tensors)
        )
    return _count_problem(name, value, tensors)


def _names_method(quantization: object) -> bool:
    """Return whether a method is named; older bitsandbytes files use two flags instead."""
    if not isinstance(quantization, dict):
        return False
    return isinstance(quantization.get("quant_method"), str) or not _FLAGS_OF_METHODS.isdisjoint(quantization)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _size_problem(name: str, size: object) -> str | None:
    if type(size) is not int:
        return (
            tr("its {name} is {value}, not a whole number").format(name=name, value=_quoted_value(size))
            if size is not None
            else None
        )
    low = 1 if name in _POSITIVE else -1 if name in ("max_position_embeddings", "n_positions") else 0
    if low <= size <= _MAX_SIZE:
        return None
    return tr("its {name} is {value}, which is not possible").format(name=name, value=_quoted_value(size))


def _count_problem(name: str, value: object, tensors: int | None) -> str | None:
    """Check the number of parts that become one Python object each."""
    if type(value) is not int or value <= 0:
        return None
    if name in _SIZES and name.endswith(("layers", "layer")):
        return _layers_problem(name, value, tensors)
    counted = name.endswith(("layers", "_labels", "experts", "_heads", "_blocks", "_groups", "_stages"))
    return (
        tr("its {name} is {value}, which is not possible").format(name=name, value=_quoted_value(value))
        if counted and value > _MAX_PARTS
        else None
    )


def _layers_problem(name: str, value: int, tensors: int | None) -> str | None:
    if tensors is not None and value > max(tensors, _SHARED_LAYERS):
        return tr("its {name} is {value}, but the weights hold {tensors:,} tensors").format(
            name=name, value=_quoted_value(value), tensors=tensors
        )
    if tensors is None and value > _MAX_LAYERS:
        return tr("its {name} is {value}, which is not possible").format(name=name, value=_quoted_value(value))
    return None


def _attention_problem(name: str, value: object) -> str | None:
    values = list(value.values()) if isinstance(value, dict) else [value]
    for one in values:
        if one is not None and not isinstance(one, str):
            return tr("its {name} is {value}, not a name").format(name=name, value=_quoted_value(one))
        if one == "flex_attention":
            return tr("its {name} is “flex_attention”, which would be recompiled for every length of the text").format(
                name=name
            )
        if one and "/" not in one and one not in _OWN_ATTENTION:
            return tr("its {name} is “{value}”, which transformers does not support").format(
                name=name, value=_quoted_value(one)
            )
    return None


def _quoted_value(value: object) -> str:
    """Return at most forty characters of the JSON value; of a huge integer, only its number of bits."""
    if type(value) is int and value.bit_length() > 200:
        return tr("a number of {bits:,} bits").format(bits=value.bit_length())
    words = f"“{value}”" if isinstance(value, str) else repr(value) if value is not None else "null"
    return words if len(words) <= 40 else f"{words[:39]}…"


MODELOPT_FILE = "hf_quant_config.json"
"""Written by NVIDIA's ModelOpt next to config.json."""
_NAMES = {"modelopt": "NVIDIA ModelOpt", "modelopt_fp4": "NVIDIA ModelOpt", "mlx": "MLX", "exl2": "ExLlamaV2",
          "exl3": "ExLlamaV3", "deepspeedfp": "DeepSpeed", "marlin": "Marlin", "qqq": "QQQ"}  # fmt: skip
_PLAIN = {"gguf", "gemma"}
"""Methods whose safetensors weights are unquantized numbers."""


def unloadable_quantization(config: Mapping[str, object], *, is_quick: bool = False) -> str | None:
    """Return why the weights that a config.json describes cannot be loaded, or None. `is_quick`: check only the formats
    listed here, without importing transformers.
    """
    return next(filter(None, (_unloadable_reason(one, is_quick) for one in _quantizations(config))), None)


def modelopt_quantization(values: Mapping[str, object]) -> str | None:
    """Return why the weights described by `hf_quant_config.json` cannot be loaded, or None."""
    inner = values.get("quantization")
    inner = inner if isinstance(inner, Mapping) else {}
    algorithm = inner.get("quant_algo")
    return _unloadable_reason({"quant_method": "modelopt", "quant_algo": algorithm}) if algorithm else None


def missing_requirement(config: PreTrainedConfig) -> str | None:
    """Return what this computer lacks to load quantized weights (a package, a GPU), as worded by transformers, or
    None.
    """
    try:
        quantizer = _create_quantizer(config)
    except ImportError as error:
        return _first_line(error)
    except Exception:  # invalid values are reported when the weights are read
        return None
    try:
        if quantizer is not None:
            quantizer.validate_environment(device_map=None, weights_only=True)
    except Exception as error:  # each method raises a different exception type
        return _first_line(error)
    return None


def stays_quantized(config: PreTrainedConfig) -> bool:
    """Return whether weights keep their stored format when loaded here; some are dequantized."""
    try:
        quantizer = _create_quantizer(config)
        if quantizer is None or quantizer.quantization_config.quant_method in _PLAIN:
            return False
        quantizer.validate_environment(device_map=None, weights_only=True)
    except Exception:  # it cannot be loaded here
        return False
    return not getattr(quantizer.quantization_config, "dequantize", False)


def _create_quantizer(config: PreTrainedConfig) -> HfQuantizer | None:
    """Create the quantizer with which transformers would load the weights."""
    texts: Any = config.get_text_config(decoder=True)
    values = getattr(config, "quantization_config", None) or getattr(texts, "quantization_config", None)
    if values is None:
        return None
    from transformers.quantizers.auto import AutoHfQuantizer

    if not AutoHfQuantizer.supports_quant_method(values):
        return None
    quantizer: HfQuantizer = AutoHfQuantizer.from_config(copy.deepcopy(values), pre_quantized=True)
    return quantizer


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _quantizations(config: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for name, value in config.items():
        if not isinstance(value, Mapping):
            continue
        if name in ("quantization_config", "compression_config"):
            yield value
        elif name == "quantization" and "bits" in value and "group_size" in value:
            yield {"quant_method": "mlx"}
        elif name.endswith("_config"):
            yield from _quantizations(value)


def _is_known(method: str) -> bool:
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    return method in AUTO_QUANTIZATION_CONFIG_MAPPING


def _unloadable_reason(quantization: Mapping[str, object], is_quick: bool = False) -> str | None:
    method = quantization.get("quant_method")
    if not isinstance(method, str) or method == "bitsandbytes":
        return None
    if method not in _NAMES if is_quick else _is_known(method):
        return None
    algorithm = quantization.get("quant_algo")
    form = f"{_NAMES.get(method, method)}, {algorithm}" if isinstance(algorithm, str) else _NAMES.get(method, method)
    return tr("its weights have a quantization format that the installed transformers cannot read ({form})").format(
        form=form
    )


FLOATS = ("float32", "bfloat16", "float16")
PACKED = {"int8": 8, "int4": 4}
"""Formats that are created at load everywhere, and their bits."""
QUANTIZED_FORMATS = {**PACKED, "fp8": 8}
"""Formats that are created at load, on an NVIDIA card by torchao, and their bits."""
KINDS = ("auto", *FLOATS, *QUANTIZED_FORMATS)


def check_format(kind: str) -> str:
    """Return `kind`. Raises ParameterError if it is not in KINDS."""
    if kind not in KINDS:
        raise ParameterError(
            tr("“{wish}” is not a weight format.").format(wish=display_name(kind)),
            tr("Use {names}.").format(names=join_names(KINDS)),
            "weights",
        )
    return kind
