"""Quantized weights of a whole matrix, in memory of their own."""

from __future__ import annotations

import torch

from decodescope.core.models.quantized.packed_matrices import quantize_groups_into, quantize_rows_into


def quantize_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 [n, K] and float32 scales [n] whose product differs from `rows` [n, K] by half a scale at most."""
    numbers, scales = torch.empty(rows.shape, dtype=torch.int8), torch.empty(len(rows))
    quantize_rows_into(rows, numbers, scales, torch.empty(rows.shape))
    return numbers, scales


def quantize_groups(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the int32 codes [n, K] of 0 … 15, and bfloat16 scales and offsets [K / 32, n, 2], of `rows` [n, K]."""
    codes = torch.empty(rows.shape, dtype=torch.int32)
    return codes, quantize_groups_into(rows, codes, torch.empty(rows.shape))
