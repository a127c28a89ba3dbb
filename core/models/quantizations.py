"""Quantizations of stored weights that the installed transformers cannot load, each with its reason."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig
    from transformers.quantizers.base import HfQuantizer

MODELOPT_FILE = "hf_quant_config.json"
"""What NVIDIA's ModelOpt writes beside config.json."""
_NAMES = {"modelopt": "NVIDIA ModelOpt", "modelopt_fp4": "NVIDIA ModelOpt", "mlx": "MLX", "exl2": "ExLlamaV2",
          "exl3": "ExLlamaV3", "deepspeedfp": "DeepSpeed", "marlin": "Marlin", "qqq": "QQQ"}  # fmt: skip
_PLAIN = {"gguf", "gemma"}
"""Methods whose weights in a folder of safetensors are plain numbers."""


def unloadable_quantization(config: Mapping[str, object], *, is_quick: bool = False) -> str | None:
    """Return why the weights that a config.json describes cannot be loaded, or None where they can. `is_quick`: compare
    with the forms known here alone, without importing transformers."""
    return next(filter(None, (_unloadable_reason(one, is_quick) for one in _quantizations(config))), None)


def modelopt_quantization(values: Mapping[str, object]) -> str | None:
    """Return the same for the content of `hf_quant_config.json`."""
    inner = values.get("quantization")
    inner = inner if isinstance(inner, Mapping) else {}
    algorithm = inner.get("quant_algo")
    return _unloadable_reason({"quant_method": "modelopt", "quant_algo": algorithm}) if algorithm else None


def missing_requirement(config: PreTrainedConfig) -> str | None:
    """Return what this machine lacks to load quantized weights (a package, a graphics card), in the words of
    transformers, or None where nothing is missing."""
    try:
        quantizer = _create_quantizer(config)
    except ImportError as error:
        return _first_line(error)
    except Exception:  # values that are wrong are reported when the weights are read
        return None
    try:
        if quantizer is not None:
            quantizer.validate_environment(device_map=None, weights_only=True)
    except Exception as error:  # each method raises a type of its own
        return _first_line(error)
    return None


def stays_quantized(config: PreTrainedConfig) -> bool:
    """Whether weights stay in their stored form when they are loaded here; some are turned into plain numbers."""
    try:
        quantizer = _create_quantizer(config)
        if quantizer is None or quantizer.quantization_config.quant_method in _PLAIN:
            return False
        quantizer.validate_environment(device_map=None, weights_only=True)
    except Exception:  # it cannot be loaded here
        return False
    return not getattr(quantizer.quantization_config, "dequantize", False)


def _create_quantizer(config: PreTrainedConfig) -> HfQuantizer | None:
    """Make what transformers would load the weights with."""
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
    return tr("its weights are quantized in a form that the installed transformers cannot read ({form})").format(
        form=form
    )
