"""Matrices of four-bit numbers, and their product with a text's vectors.

Of every 32 neighbours in a row, the least and the greatest become 0 and 15 (asymmetric round to nearest, in groups as
of Frantar et al. 2022, "GPTQ", https://arxiv.org/abs/2210.17323, without its corrections). The kernel of torch reads
a number q as (q − 8) · scale + offset, with scale and offset in bfloat16, and multiplies vectors in bfloat16.
"""

from __future__ import annotations

import torch

from core.models.quantized.page_buffers import allocate_pages

GROUP = 32
"""Weights that share a scale and an offset."""
_BLOCK = 16
"""The kernel takes whole blocks of so many outputs."""
PACKED_OUTPUTS = 64
"""Outputs that are packed together; a portion that ends elsewhere would be packed otherwise."""
_PACK_PORTION = 2**18
"""Weights that are packed at a time: while they are, each takes some forty bytes."""


def fits_int4(outputs: int, inputs: int) -> bool:
    """Whether the kernel can multiply [outputs, inputs]; other matrices stay at eight bits."""
    return outputs % _BLOCK == 0 and inputs % GROUP == 0


def quantize_groups(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 [n, K] of 0 … 15, and bfloat16 [K / 32, n, 2] of scales and offsets, of `rows` [n, K]."""
    groups = allocate_pages(tuple(rows.shape), torch.float32).copy_(rows).view(len(rows), -1, GROUP)
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((high - low) / 15).clamp_(min=1e-8).bfloat16().float()
    offset = (low + 8 * scale).bfloat16().float()
    exact = groups.sub_(offset).div_(scale).add_(8).round_().clamp_(0, 15)
    beside = torch.cat([scale, offset], -1).transpose(0, 1).contiguous()
    return allocate_pages(tuple(rows.shape), torch.int32).copy_(exact.flatten(-2)), beside.bfloat16()


class Int4Matrix:
    """Packed weights [N, K]; N in whole blocks of 16, K in whole groups of 32."""

    def __init__(self, packed: torch.Tensor, scales: torch.Tensor) -> None:
        self._packed, self._scales = packed, scales

    @property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers as the kernel wants them, and scales and offsets."""
        return self._packed, self._scales

    @property
    def nbytes(self) -> int:
        """Half a byte a weight, and four bytes for each group."""
        return self._packed.nbytes + self._scales.nbytes

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """float32 [M, N] of [M, K]."""
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            vectors.bfloat16(), self._packed, GROUP, self._scales
        )
        return product.float()


def pack_int4(rows: torch.Tensor) -> Int4Matrix:
    """`rows` [N, K] of floats in four bits, a portion of them at a time: numbers before packing take 32 bits each."""
    outputs, inputs = rows.shape
    portion = max(PACKED_OUTPUTS, (_PACK_PORTION // inputs) // PACKED_OUTPUTS * PACKED_OUTPUTS)
    packed, beside = [], []
    for start in range(0, outputs, portion):
        numbers, more = quantize_groups(rows[start : start + portion])
        packed.append(torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1))
        beside.append(more)
    whole = allocate_pages((outputs, *packed[0].shape[1:]), packed[0].dtype)
    return Int4Matrix(torch.cat(packed, out=whole), torch.cat(beside, 1))
