"""Rotary positions: their base, width and scaling in metadata and in transformers' config, in both directions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decodescope.core.errors import UnpackableError
from decodescope.core.models.gguf.architectures import Config, Metadata, unsupported_error
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0
FREQUENCY_FACTORS = "rope_freqs.weight"
"""Tensor of the factors that divide the frequencies."""


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
    if "rope_factors_long.weight" in file.tensors and "rope_factors_short.weight" in file.tensors:
        rope |= {
            "rope_type": "longrope", "long_factor": _floats(file, "rope_factors_long.weight"),
            "short_factor": _floats(file, "rope_factors_short.weight"),
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


def rope_metadata(model_name: str, config: PreTrainedConfig, width: int) -> Metadata:
    """Return the metadata of a config's rotary positions, without the architecture's name; empty if it has none.

    `width`: numbers of a head. Raises UnpackableError for a rule that is not written.
    """
    rope: Mapping[str, Any] | None = getattr(config, "rope_parameters", None)
    if not rope:
        return {}
    found: Metadata = {}
    if "full_attention" in rope:
        found["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        rope = dict(rope["full_attention"])
    found["rope.freq_base"] = float(rope["rope_theta"])
    found["rope.dimension_count"] = int(width * rope.get("partial_rotary_factor", 1.0))
    kind = rope.get("rope_type", "default")
    if kind in ("linear", "yarn"):
        found |= {"rope.scaling.type": kind, "rope.scaling.factor": float(rope["factor"])}
        if original := rope.get("original_max_position_embeddings"):
            found["rope.scaling.original_context_length"] = int(original)
    elif kind not in ("default", "llama3"):
        raise UnpackableError(
            tr("{model} scales its positions by the rule “{kind}”, which is not written as GGUF here.").format(
                model=model_name, kind=kind
            ),
            tr("Use llama.cpp's own converter."),
        )
    return found


def frequency_factors(config: PreTrainedConfig, width: int) -> list[float] | None:
    """Return by what a file's frequencies are divided; None if they are not."""
    rope: Mapping[str, Any] = getattr(config, "rope_parameters", None) or {}
    return _llama3_factors(width // 2, rope) if rope.get("rope_type") == "llama3" else None
