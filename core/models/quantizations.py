"""Quantizations of stored weights that the installed transformers cannot load, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resources.language import tr

FOREIGN_FILE = "hf_quant_config.json"
"""What NVIDIA's ModelOpt writes beside config.json."""
_NAMES = {"modelopt": "NVIDIA ModelOpt", "modelopt_fp4": "NVIDIA ModelOpt", "mlx": "MLX", "exl2": "ExLlamaV2",
          "exl3": "ExLlamaV3", "deepspeedfp": "DeepSpeed", "marlin": "Marlin", "qqq": "QQQ"}  # fmt: skip


def unloadable_quantization(config: Mapping[str, object], *, is_quick: bool = False) -> str | None:
    """Return why the weights that a config.json describes cannot be loaded, or None where they can. `is_quick`: compare
    with the forms known here alone, without importing transformers."""
    return next(filter(None, (_reason(one, is_quick) for one in _quantizations(config))), None)


def foreign_quantization(values: Mapping[str, object]) -> str | None:
    """Return the same for the content of `hf_quant_config.json`."""
    inner = values.get("quantization")
    inner = inner if isinstance(inner, Mapping) else {}
    algorithm = inner.get("quant_algo")
    return _reason({"quant_method": "modelopt", "quant_algo": algorithm}) if algorithm else None


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


def _reason(quantization: Mapping[str, object], is_quick: bool = False) -> str | None:
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
