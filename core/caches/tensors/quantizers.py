"""Ways to write groups of numbers in a few bits. Every one gives codes, a scale and an offset a group."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import torch

from core.errors import CacheError
from resources.language import tr

QuantizedGroups = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Codes [N, G] as uint8, scales [N, 1], offsets [N, 1]: number ≈ code · scale + offset."""
Quantizer = Callable[[torch.Tensor, int], QuantizedGroups]

_LIBRARIES = {"quanto": ("optimum", "optimum.quanto"), "hqq": ("hqq",)}
_PACKAGES = {"quanto": "optimum-quanto", "hqq": "hqq"}
_BITS = {"built-in": (1, 2, 4, 8), "quanto": (2, 4), "hqq": (1, 2, 4, 8), "fp8": (8,)}


def quantizer_for(engine: str, bits: int) -> Quantizer:
    """The quantizer of an engine. Raises CacheError when its library is missing or it knows no such width."""
    if not is_installed(engine):
        raise CacheError(
            tr("Quantizing with {engine} needs a library that is not installed.").format(engine=engine),
            tr("Install it with: {command}. Or choose the built-in quantizer.").format(
                command=f"pip install {_PACKAGES[engine]}"
            ),
        )
    if bits not in _BITS[engine]:
        widths = ", ".join(map(str, _BITS[engine]))
        raise CacheError(
            tr("{engine} cannot write numbers in {bits} bits.").format(engine=engine, bits=bits),
            tr("Choose one of: {names}.").format(names=widths),
        )
    return {"built-in": quantize_min_max, "quanto": quantize_quanto, "hqq": quantize_hqq, "fp8": quantize_fp8}[engine]


def is_installed(engine: str) -> bool:
    """Whether what the engine needs can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in _LIBRARIES.get(engine, ()))


def quantize_min_max(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Even steps from the least to the greatest number of each group [N, G] (asymmetric round-to-nearest); with one
    bit the means below and above the group's middle, for two extremes would miss everything between them."""
    if bits == 1:
        middle = groups.mean(1, keepdim=True)
        reach = (groups - middle).abs().mean(1, keepdim=True)
        return (groups > middle).to(torch.uint8), 2 * reach, middle - reach
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    scale = ((high - low) / (2**bits - 1)).clamp(min=torch.finfo(torch.float16).tiny)
    codes = ((groups - low) / scale).round().clamp(0, 2**bits - 1)
    return codes.to(torch.uint8), scale, low


def quantize_quanto(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """optimum-quanto's `MaxOptimizer`, 2 or 4 bits."""
    import optimum.quanto as library  # optional, and slow to load

    kind = library.qint4 if bits == 4 else library.qint2
    scale, shift = library.MaxOptimizer()(groups, kind, 0, None)
    # The library's own operator; going through its packed tensors would compile C++ on the user's machine.
    codes: torch.Tensor = torch.ops.quanto.quantize_affine(groups, bits, 0, None, scale, shift)
    return codes, scale, -shift


def quantize_hqq(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """Half-quadratic quantization (Badri & Shaji 2023), which moves the zero point to lessen the error."""
    from hqq.core.quantize import Quantizer as Library  # optional, and slow to load

    packed, meta = Library.quantize(
        groups, nbits=bits, group_size=groups.shape[1], axis=1, device=str(groups.device), compute_dtype=torch.float32
    )
    codes = Library.unpack[meta["packing"]](packed)
    return codes.to(torch.uint8), meta["scale"], -meta["zero"] * meta["scale"]


def quantize_fp8(groups: torch.Tensor, bits: int) -> QuantizedGroups:
    """8-bit floating point (e4m3), scaled so that the greatest number of a group just fits."""
    limit = torch.finfo(torch.float8_e4m3fn).max
    scale = (groups.abs().amax(1, keepdim=True) / limit).clamp(min=torch.finfo(torch.float16).tiny)
    codes = (groups / scale).to(torch.float8_e4m3fn)
    return codes.view(torch.uint8), scale, torch.zeros_like(scale)


def pack_codes(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Codes [..., n] of `bits` bits into bytes [..., n · bits / 8]."""
    each = 8 // bits
    if each == 1:
        return codes
    parts = torch.unflatten(codes, -1, (-1, each))
    packed = parts[..., 0].clone()
    for place in range(1, each):
        packed |= parts[..., place] << (place * bits)
    return packed


def unpack_codes(packed: torch.Tensor, bits: int) -> torch.Tensor:
    """The inverse of `pack_codes`."""
    each = 8 // bits
    if each == 1:
        return packed
    return torch.stack([(packed >> (place * bits)) & (2**bits - 1) for place in range(each)], dim=-1).flatten(-2)
