"""Block formats of tensors in GGUF files: conversion to float32 and from it.

Quantized rows consist of blocks of 32, 64, 128 or 256 weights. A block holds a scale (often a half-precision number),
sometimes an offset or scales of smaller groups, and the packed codes. Source: the description of the formats in
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the block layouts in ggml's `ggml-common.h`. All numbers
are little-endian.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from decodescope.core.models.gguf.gguf_file import BlockFormat

_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
_IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""Values of the 16 codes of IQ4_NL and IQ4_XS."""
_FP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""Twice the values of the 16 codes of a 4-bit float (E2M1)."""


def dequantize(blocks: torch.Tensor, fmt: BlockFormat) -> torch.Tensor:
    """Convert rows of blocks, uint8 [N, row bytes], to float32 [N, K].

    The intermediate results take about 20 bytes per weight: convert large matrices in portions of rows. Raises KeyError
    if the format is not in DEQUANTIZABLE.
    """
    if fmt.name in _FLOATS:
        return _reinterpret(blocks, _FLOATS[fmt.name]).float()
    rows = len(blocks)
    count = blocks.shape[1] // fmt.block_bytes
    weights = _READERS[fmt.name](blocks.reshape(rows * count, fmt.block_bytes))
    return weights.view(rows, count * fmt.block_weights)


def _reinterpret(part: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the bytes of uint8 [n, k · itemsize] as `dtype` [n, k]; copy them if they are not aligned."""
    if part.is_contiguous() and part.data_ptr() % dtype.itemsize == 0:
        return part.view(dtype)
    return part.clone(memory_format=torch.contiguous_format).view(dtype)


def _half(blocks: torch.Tensor, start: int) -> torch.Tensor:
    """Return the half-precision number at byte `start` of each block as float32 [n, 1]."""
    return _reinterpret(blocks[:, start : start + 2], torch.float16).float()


def _nibbles(part: torch.Tensor, group: int) -> torch.Tensor:
    """Return 4-bit codes uint8 [n, groups, 2 · group] of bytes [n, groups · group]: first low halves, then high."""
    groups = part.reshape(len(part), -1, group)
    return torch.cat([groups & 15, groups >> 4], -1)


def _bits(part: torch.Tensor, shifts: tuple[int, ...], mask: int) -> torch.Tensor:
    """Return (part >> shift) & mask for each shift: uint8 [n, shifts, k] of [n, k]."""
    return torch.stack([part >> shift & mask for shift in shifts], 1)


def _fifth_bits(part: torch.Tensor) -> torch.Tensor:
    """Return the fifth bit of 32 codes, 0 or 16, as uint8 [n, 32], of the bit field [n, 4]."""
    return _bits(part, tuple(range(8)), 1).transpose(1, 2).reshape(len(part), 32) << 4


def _lookup(values: tuple[int, ...], codes: torch.Tensor) -> torch.Tensor:
    """Return the float32 value of each code."""
    return torch.tensor(values, dtype=torch.float32)[codes.int()]


def _q4_0(blocks: torch.Tensor) -> torch.Tensor:
    return (_nibbles(blocks[:, 2:], 16)[:, 0].float() - 8) * _half(blocks, 0)


def _q4_1(blocks: torch.Tensor) -> torch.Tensor:
    return _nibbles(blocks[:, 4:], 16)[:, 0].float() * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks: torch.Tensor) -> torch.Tensor:
    codes = _nibbles(blocks[:, 6:], 16)[:, 0] | _fifth_bits(blocks[:, 2:6])
    return (codes.float() - 16) * _half(blocks, 0)


def _q5_1(blocks: torch.Tensor) -> torch.Tensor:
    codes = _nibbles(blocks[:, 8:], 16)[:, 0] | _fifth_bits(blocks[:, 4:8])
    return codes.float() * _half(blocks, 0) + _half(blocks, 2)


def _q8_0(blocks: torch.Tensor) -> torch.Tensor:
    return _reinterpret(blocks[:, 2:], torch.int8).float() * _half(blocks, 0)


def _q8_1(blocks: torch.Tensor) -> torch.Tensor:
    return _reinterpret(blocks[:, 4:], torch.int8).float() * _half(blocks, 0)


def _q2_k(blocks: torch.Tensor) -> torch.Tensor:
    scales, quarters = blocks[:, :16], blocks[:, 16:80].reshape(-1, 2, 32)
    codes = torch.stack([quarters >> shift & 3 for shift in (0, 2, 4, 6)], 2).reshape(-1, 16, 16)
    scale = (scales & 15).float() * _half(blocks, 80)
    offset = (scales >> 4).float() * _half(blocks, 82)
    return codes.float() * scale[..., None] - offset[..., None]


def _q3_k(blocks: torch.Tensor) -> torch.Tensor:
    low = torch.stack([blocks[:, 32:96].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    high = _bits(blocks[:, :32], tuple(range(8)), 1)
    codes = low.reshape(-1, 16, 16).float() + (high.reshape(-1, 16, 16).float() - 1) * 4
    packed = blocks[:, 96:108]
    scales = torch.cat([packed[:, :8] & 15, packed[:, :8] >> 4], 1)
    scales = scales | _bits(packed[:, 8:], (0, 2, 4, 6), 3).reshape(-1, 16) << 4
    return codes * ((scales.float() - 32) * _half(blocks, 108))[..., None]


def _six_bit_scales(packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the 6-bit scales and offsets of Q4_K and Q5_K, uint8 [n, 8] each, of their 12 bytes."""
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat([first & 63, (rest & 15) | (first >> 6) << 4], 1)
    offsets = torch.cat([second & 63, (rest >> 4) | (second >> 6) << 4], 1)
    return scales, offsets


def _scale_groups(blocks: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Return code · scale − offset for codes [n, 8, 32] of Q4_K and Q5_K."""
    scales, offsets = _six_bit_scales(blocks[:, 4:16])
    scale, offset = scales.float() * _half(blocks, 0), offsets.float() * _half(blocks, 2)
    return codes.float() * scale[..., None] - offset[..., None]


def _q4_k(blocks: torch.Tensor) -> torch.Tensor:
    return _scale_groups(blocks, _nibbles(blocks[:, 16:], 32).view(-1, 8, 32))


def _q5_k(blocks: torch.Tensor) -> torch.Tensor:
    high = _bits(blocks[:, 16:48], tuple(range(8)), 1) << 4
    return _scale_groups(blocks, _nibbles(blocks[:, 48:], 32).view(-1, 8, 32) | high)


def _q6_k(blocks: torch.Tensor) -> torch.Tensor:
    low = blocks[:, :128].reshape(-1, 2, 64)
    low = torch.stack([low & 15, low >> 4], 2).view(-1, 2, 4, 32)
    high = torch.stack([blocks[:, 128:192].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    codes = (low | high << 4).reshape(-1, 16, 16).float() - 32
    return codes * (_reinterpret(blocks[:, 192:208], torch.int8).float() * _half(blocks, 208))[..., None]


def _q8_k(blocks: torch.Tensor) -> torch.Tensor:
    return _reinterpret(blocks[:, 4:260], torch.int8).float() * _reinterpret(blocks[:, :4], torch.float32)


def _iq4_nl(blocks: torch.Tensor) -> torch.Tensor:
    return _lookup(_IQ4_VALUES, _nibbles(blocks[:, 2:], 16)[:, 0]) * _half(blocks, 0)


def _iq4_xs(blocks: torch.Tensor) -> torch.Tensor:
    low = _nibbles(blocks[:, 4:8], 1).view(-1, 8)
    high = _bits(blocks[:, 2:4], (0, 2, 4, 6), 3).transpose(1, 2).reshape(-1, 8)
    scale = ((low | high << 4).float() - 32) * _half(blocks, 0)
    return _lookup(_IQ4_VALUES, _nibbles(blocks[:, 8:], 16)) * scale[..., None]


def _ternary_digits(part: torch.Tensor, count: int) -> torch.Tensor:
    """Return the first `count` base-3 digits of each byte, float32 [n, count, k] of −1, 0, 1.

    A byte is a fraction of 256; its digits are the integer parts of its repeated products with 3.
    """
    digits, fraction = [], part.int()
    for _ in range(count):
        fraction = fraction * 3
        digits.append(fraction >> 8)
        fraction = fraction & 255
    return torch.stack(digits, 1).float() - 1


def _tq1_0(blocks: torch.Tensor) -> torch.Tensor:
    parts = ((blocks[:, :32], 5), (blocks[:, 32:48], 5), (blocks[:, 48:52], 4))
    codes = torch.cat([_ternary_digits(part, count).flatten(1) for part, count in parts], 1)
    return codes * _half(blocks, 52)


def _tq2_0(blocks: torch.Tensor) -> torch.Tensor:
    codes = torch.stack([blocks[:, :64].reshape(-1, 2, 32) >> shift & 3 for shift in (0, 2, 4, 6)], 2)
    return (codes.reshape(-1, 256).float() - 1) * _half(blocks, 64)


def _mxfp4(blocks: torch.Tensor) -> torch.Tensor:
    scale = torch.exp2(blocks[:, :1].double() - 128).float()
    return _lookup(_FP4_VALUES, _nibbles(blocks[:, 1:], 16)[:, 0]) * scale


def _nvfp4(blocks: torch.Tensor) -> torch.Tensor:
    """Read NVFP4: four groups of 16 weights, each with an unsigned 8-bit float (E4M3) as scale; 127 stands for 0."""
    exponent, mantissa = (blocks[:, :4] >> 3 & 15).float(), (blocks[:, :4] & 7).float()
    scale = torch.where(exponent == 0, mantissa * 2.0**-9, (1 + mantissa / 8) * torch.exp2(exponent - 7))
    scale = torch.where(blocks[:, :4] == 127, 0.0, scale)
    return _lookup(_FP4_VALUES, _nibbles(blocks[:, 4:], 8)) * (scale / 2)[..., None]


_READERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0, "Q8_1": _q8_1, "Q2_K": _q2_k,
    "Q3_K": _q3_k, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k, "Q8_K": _q8_k, "IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs,
    "TQ1_0": _tq1_0, "TQ2_0": _tq2_0, "MXFP4": _mxfp4, "NVFP4": _nvfp4,
}  # fmt: skip
"""Functions that read blocks, uint8 [n, block bytes], as float32 with a block's weights per row."""

DEQUANTIZABLE = frozenset({*_FLOATS, *_READERS})
"""Names of the formats that `dequantize` reads."""
NATIVE = frozenset(
    {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
     "IQ4_XS"}
)  # fmt: skip
"""Names of the formats that native kernels multiply without converting the matrix."""


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


def to_blocks(values: torch.Tensor, format_name: str) -> torch.Tensor:
    """Return the bytes of floats, uint8, in a float format or one of QUANTIZERS."""
    if (quantize := QUANTIZERS.get(format_name)) is not None:
        return quantize(values.reshape(-1, 32)).view(-1)
    return values.to(_FLOATS[format_name]).view(-1).view(torch.uint8)
