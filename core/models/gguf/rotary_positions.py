"""Rotary positions: their base, width and scaling in metadata and in transformers' config, in both directions."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decodescope.core.models.gguf.architectures import Config, Metadata, unsupported_error
from decodescope.core.models.gguf.config_comparison import rotated_width, rotation
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0
FREQUENCY_FACTORS = "rope_freqs.weight"
"""Tensor of the factors that divide the frequencies."""
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"
"""Tensors of the factors for texts that are longer than those of the first training, and for the others."""
FACTOR_TENSORS = (FREQUENCY_FACTORS, LONG_FACTORS, SHORT_FACTORS)
"""Tensors that belong to the config."""
_YARN_BETAS = {"beta_fast": 32.0, "beta_slow": 1.0}
"""Bounds of YaRN's ramp by their names in transformers, and their values where a file has none."""


def add_rope_parameters(file: GgufFile, config: Config) -> None:
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
        rope |= {name: value for name in _YARN_BETAS if (value := file.number(f"{prefix}.scaling.yarn_{name}"))}
        if attention := file.number(f"{prefix}.scaling.attn_factor"):
            rope["attention_factor"] = attention * yarn_attention(factor)
    if LONG_FACTORS in file.tensors and SHORT_FACTORS in file.tensors:
        rope |= {
            "rope_type": "longrope", "long_factor": _floats(file, LONG_FACTORS),
            "short_factor": _floats(file, SHORT_FACTORS),
        }  # fmt: skip
        context = config.get("max_position_embeddings")
        config["original_max_position_embeddings"] = rope["original_max_position_embeddings"] = original or context
        if attention := file.number(f"{prefix}.scaling.attn_factor"):
            rope["attention_factor"] = attention
    elif FREQUENCY_FACTORS in file.tensors:
        rope |= _divided_frequencies(_floats(file, FREQUENCY_FACTORS), float(theta or 0), config)
    config["rope_parameters"] = rope


def _divided_frequencies(factors: list[float], theta: float, config: Config) -> Config:
    """Return the scaling that divides each frequency by a factor: Llama 3's rule where it gives these factors, else the
    factors themselves.

    llama.cpp stores the factors only (Llama 3's rule: Dubey et al. 2024, "The Llama 3 Herd of Models").
    """
    for original in (8192, 16384, 4096, 32768):
        scaling = {
            "rope_type": "llama3", "rope_theta": theta, "factor": max(factors), "low_freq_factor": _LLAMA3_LOW,
            "high_freq_factor": _LLAMA3_HIGH, "original_max_position_embeddings": original,
        }  # fmt: skip
        rule = _llama3_factors(len(factors), scaling)
        if all(abs(one - other) <= 1e-3 * other for one, other in zip(rule, factors, strict=True)):
            return scaling
    context = config.get("max_position_embeddings")
    return {
        "rope_type": "longrope", "long_factor": factors, "short_factor": factors, "attention_factor": 1.0,
        "original_max_position_embeddings": context,
    }  # fmt: skip


def _llama3_factors(count: int, rope: Mapping[str, Any]) -> list[float]:
    """Return by what Llama 3's rule divides each of `count` frequencies."""
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    found = []
    for index in range(count):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (index / count)
        turns = rope["original_max_position_embeddings"] / wavelength
        smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
        found.append(1 / ((1 - smooth) / factor + smooth))
    return found


def _floats(file: GgufFile, name: str) -> list[float]:
    tensor = file.tensors[name]
    if tensor.fmt.name != "F32" or len(tensor.shape) != 1:
        raise unsupported_error(file, tr("the tensor {name} is not a list of float32").format(name=name))
    found = list(file.data(tensor).cast("f"))
    if not all(0 < number < math.inf for number in found):
        raise unsupported_error(file, tr("the tensor {name} contains numbers that are not positive").format(name=name))
    return found


def rope_metadata(config: PreTrainedConfig, width: int) -> Metadata:
    """Return the metadata of a config's rotary positions, without the architecture's name; empty if it has none.

    `width`: numbers of a head.
    """
    rope: Mapping[str, Any] | None = getattr(config, "rope_parameters", None)
    if not rope:
        return {}
    found: Metadata = {}
    is_nested = "full_attention" in rope
    if is_nested:
        found["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        rope = dict(rope["full_attention"])
    found["rope.freq_base"] = float(rope["rope_theta"])
    found["rope.dimension_count"] = rotated_width(rope, width)
    found |= _scaling_metadata(config, "full_attention" if is_nested else "", rope)
    return found


def _scaling_metadata(config: PreTrainedConfig, layers: str, rope: Mapping[str, Any]) -> Metadata:
    """Return the metadata of the rules that GGUF has names for; the rest is seen when the file is read back."""
    kind = rope.get("rope_type", "default")
    if kind not in ("linear", "yarn", "longrope"):
        return {}
    found: Metadata = {"rope.scaling.type": kind}
    if kind != "longrope":
        found["rope.scaling.factor"] = float(rope["factor"])
    if original := rope.get("original_max_position_embeddings"):
        found["rope.scaling.original_context_length"] = int(original)
    if kind == "linear":
        return found
    attention, further = rotation(copy.deepcopy(config), layers, rope, 1).factors
    if kind == "yarn":
        if further:
            found["rope.scaling.yarn_log_multiplier"] = 0.1 * further
        else:
            attention /= yarn_attention(rope["factor"])
        for name, usual in _YARN_BETAS.items():
            if (value := rope.get(name) or usual) != usual:
                found[f"rope.scaling.yarn_{name}"] = float(value)
    if kind == "longrope" or not math.isclose(attention, 1.0, rel_tol=1e-6):
        found["rope.scaling.attn_factor"] = attention
    return found


def yarn_attention(factor: float) -> float:
    """Return by what YaRN multiplies rotated numbers unless a model says otherwise (Peng et al. 2023, "YaRN",
    section 3.4); `rope.scaling.attn_factor` counts in it.
    """
    return 0.1 * math.log(factor) + 1 if factor > 1 else 1.0


def frequency_factors(config: PreTrainedConfig, width: int) -> dict[str, list[float]]:
    """Return by what a file's frequencies are divided, by the name of the tensor; empty if they are not."""
    rope: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    match rope.get("rope_type"):
        case "llama3":
            return {FREQUENCY_FACTORS: _llama3_factors(rotated_width(rope, width) // 2, rope)}
        case "longrope":
            return {LONG_FACTORS: list(rope["long_factor"]), SHORT_FACTORS: list(rope["short_factor"])}
    return {}
