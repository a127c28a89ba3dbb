"""The quantized cache: older tokens in a few bits, the latest tokens exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.caches.base import CacheBackend, Variant, plain_attention_reason
from decodescope.core.caches.measurement import CacheEstimate, RunShape
from decodescope.core.common.claim import GREEDY_CELL, Claim, ClaimCell
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import Parameter, Settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

    from decodescope.core.caches.base import CacheOperation
    from decodescope.core.caches.tensors.quantized import QuantizationSettings
    from decodescope.core.models.loaded_model import LoadedModel

_AXES = ("channel", "token")
BITS = Parameter(
    "nbits", mark("Bits"), "choice", 4,
    mark("Bits per number. 8 is hardly noticeable, 4 seldom, 2 often; 1 shows how a text falls apart."),
    choices=(1, 2, 4, 8), option=True,
)  # fmt: skip
ENGINE = Parameter(
    "engine", mark("Quantizer"), "choice", "built-in",
    mark("How numbers become codes. Built-in: even steps between minimum and maximum. quanto (2, 4 bits) "
        "needs the package optimum-quanto, HQQ the package hqq. fp8: 8-bit floating point."),
    choices=("built-in", "quanto", "hqq", "fp8"), option=True,
)  # fmt: skip
AXIS_KEY = Parameter(
    "axis_key", mark("Key scales per"), "choice", "channel",
    mark("Some channels of the keys are much larger than the others, so each channel has its own scales "
        "(KIVI)."),
    choices=_AXES, option=True, advanced=True,
)  # fmt: skip
AXIS_VALUE = Parameter(
    "axis_value", mark("Value scales per"), "choice", "token",
    mark("Values have no such outlier channels; each token has its own scales (KIVI)."),
    choices=_AXES, option=True, advanced=True,
)  # fmt: skip
GROUP = Parameter(
    "q_group_size", mark("Group size"), "int", 32,
    mark("Numbers that share a scale and an offset. Smaller groups lose less and take more memory."),
    minimum=8, maximum=1024, soft_maximum=128, step=8, option=True, advanced=True,
)  # fmt: skip
RESIDUAL = Parameter(
    "residual_length", mark("Exact tokens"), "int", 64,
    mark("The latest tokens stay exact until there are this many, then they are quantized as one block. A "
        "multiple of the group size."),
    minimum=8, maximum=8192, soft_maximum=256, step=8, option=True, advanced=True,
)  # fmt: skip


def quantization_settings(options: Settings) -> QuantizationSettings:
    """Return the quantization settings with defaults filled in."""
    from decodescope.core.caches.tensors.quantized import QuantizationSettings  # needs torch

    given = {
        parameter: options.get(parameter.name) for parameter in (ENGINE, BITS, AXIS_KEY, AXIS_VALUE, GROUP, RESIDUAL)
    }
    engine, bits, axis_key, axis_value, group, residual = (
        parameter.default if value is None else value for parameter, value in given.items()
    )
    return QuantizationSettings(engine, int(bits), axis_key, axis_value, int(group), int(residual))


def build(model: LoadedModel, length: int, options: Settings) -> Cache:
    """Build an empty quantized cache. Raises CacheError if the quantizer is not installed or does not support the bit
    width.
    """
    from decodescope.core.caches.tensors.dynamic_layers import with_cross_attention
    from decodescope.core.caches.tensors.quantized import build_quantized  # torch is loaded only when something runs

    return with_cross_attention(model, build_quantized(model, quantization_settings(options)))


def describe(model: LoadedModel, run: RunShape) -> CacheEstimate:
    """Describe full blocks in few bits, with two 16-bit numbers per group, and the latest tokens unquantized."""
    from decodescope.core.caches.tensors.cache_sizes import model_layer_shapes
    from decodescope.core.caches.tensors.quantized import quantized_size  # needs torch

    chosen = quantization_settings(run.options)
    return CacheEstimate(
        quantized_size(model_layer_shapes(model), run, chosen), block=chosen.residual, bits=chosen.bit_width
    )


def rejection_reason(model: LoadedModel, needs: frozenset[CacheOperation], options: Settings) -> str | None:
    """Return why a model is not supported; only decoders with full attention in every layer are."""
    return plain_attention_reason(model, tr("Quantized"))


def generate_equivalent(options: Settings, needs: frozenset[CacheOperation], device: str) -> GenerateEquivalent:
    """Return only the reason why there is none: the cache of that name in `generate` stores other numbers."""
    return GenerateEquivalent(
        missing=tr(
            "transformers' quantized cache quantizes the prompt immediately and groups its numbers "
            "differently, so its text would differ."
        )
    )


CLAIMS = (
    Claim(
        name="two-bits-read-alike",
        title=mark("Two bits hardly change what the model reads"),
        plain=mark("Storing what was read with two bits per number leaves the "
            "model’s predictions nearly as they were."),
        exact=mark("The mean log-probability of a text differs by less than 0.05 between a 2-bit and an exact cache."),
        source="Liu, Yuan, Jin, Zhong, Xu, Braverman, Chen, Hu 2024, KIVI: A Tuning-Free "
            "Asymmetric 2bit Quantization for KV Cache",
        address="https://arxiv.org/abs/2402.02750",
        baseline=ClaimCell(mark("Exact")),
        tested=ClaimCell(
            mark("2 bits"), cache="quantized", cache_settings={"nbits": 2, "q_group_size": 32, "residual_length": 32}
        ),
        measure="read_log_probability", expects="equal", margin=0.05, max_new_tokens=160, target=64.0,
    ),
    Claim(
        name="two-bits-save-memory",
        title=mark("Two bits save most of the cache"),
        plain=mark("Storing what was read with two bits per number takes a small part of the memory."),
        exact=mark("The largest size of a 2-bit cache is below that of an exact cache by at least a third."),
        source="Liu, Yuan, Jin, Zhong, Xu, Braverman, Chen, Hu 2024, KIVI: A Tuning-Free "
            "Asymmetric 2bit Quantization for KV Cache",
        address="https://arxiv.org/abs/2402.02750",
        baseline=GREEDY_CELL,
        tested=ClaimCell(
            mark("2 bits"), {"do_sample": False}, "greedy", "quantized",
            {"nbits": 2, "q_group_size": 32, "residual_length": 32},
        ),
        measure="cache_share", expects="lower", margin=0.33, max_new_tokens=128,
    ),
)  # fmt: skip

BACKEND = CacheBackend(
    name="quantized",
    title=mark("Quantized"),
    summary=mark("older tokens in 1 to 8 bits, the latest exact"),
    build=build,
    describe=describe,
    variants=(
        Variant(mark("Quantized, 8 bits"), mark("8-bit"), {"nbits": 8}),
        Variant(mark("Quantized, 4 bits"), mark("4-bit"), {"nbits": 4}),
        Variant(mark("Quantized, 2 bits"), mark("2 bits"), {"nbits": 2}),
    ),
    parameters=(BITS, ENGINE, AXIS_KEY, AXIS_VALUE, GROUP, RESIDUAL),
    exact=False,
    claims=CLAIMS,
    paper="Liu et al. 2024, KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache",
    aliases=("quanto", "hqq"),
    order=60,
    rejection_reason=rejection_reason,
    offers=frozenset({"reorder", "copy"}),
    generate_equivalent=generate_equivalent,
)
