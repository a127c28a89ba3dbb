"""Operations of llama.cpp's converter on tensors, named in `architectures.py`, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from decodescope.core.models.gguf.architectures import (
    BY_GROUP,
    BY_HEAD,
    INTERLEAVED,
    JOINED,
    LOG_NEGATED,
    MINUS_ONE,
    ROWS_OF_K,
    ROWS_OF_Q,
    TRANSPOSED,
    UNSQUEEZED,
)

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


class HeadCounts(NamedTuple):
    """Numbers of heads, by which rows are reordered."""

    queries: int
    keys: int

    @classmethod
    def of(cls, config: PreTrainedConfig) -> HeadCounts:
        """Return the numbers of a config; 1 for models without heads."""
        queries = int(getattr(config, "num_attention_heads", None) or 1)
        keys = getattr(config, "num_key_value_heads", None) or getattr(config, "num_kv_heads", None)
        return cls(queries, int(keys or queries))


def row_order(operation: str, count: int, heads: HeadCounts) -> torch.Tensor | None:
    """Return the stored index of each of `count` outputs in transformers' order; None if they are the same."""
    stored = torch.arange(count)
    if operation in (ROWS_OF_Q, ROWS_OF_K):
        rotated = heads.queries if operation == ROWS_OF_Q else heads.keys
        return stored.view(rotated, -1, 2).transpose(1, 2).reshape(-1)
    if operation == BY_HEAD:
        return stored.view(3, heads.queries, -1).transpose(0, 1).reshape(-1)
    if operation == BY_GROUP:
        rows = stored.view(heads.queries + 2 * heads.keys, -1)
        kinds = rows.split((heads.queries, heads.keys, heads.keys))
        return torch.cat([kind.view(heads.keys, -1, rows.shape[1]) for kind in kinds], 1).reshape(-1)
    return None


def restore_numbers(values: torch.Tensor, operation: str) -> torch.Tensor:
    """Undo what was done to each number of a tensor."""
    if operation == MINUS_ONE:
        return values - 1
    return values.neg().log() if operation == LOG_NEGATED else values


def parameter_shape(stored: tuple[int, ...], operation: str) -> tuple[int, ...]:
    """Return the shape in transformers of a stored tensor."""
    if operation == TRANSPOSED and len(stored) == 2:
        return stored[::-1]
    if operation == INTERLEAVED and len(stored) == 3:
        return (stored[0], stored[2], stored[1])
    if operation == UNSQUEEZED:
        return (1, *stored) if len(stored) == 1 else (stored[0], 1, *stored[1:])
    return stored


def restore_shape(values: torch.Tensor, operation: str) -> torch.Tensor:
    """Return a stored tensor in the shape that it has in transformers."""
    if operation == TRANSPOSED and values.dim() == 2:
        return values.t().contiguous()
    if operation == INTERLEAVED and values.dim() == 3:
        return values.transpose(1, 2)
    return values.view(parameter_shape(tuple(values.shape), operation))


def stored_values(values: torch.Tensor, operation: str, heads: HeadCounts) -> torch.Tensor:
    """Do what llama.cpp's converter does to a parameter, or to a part of one."""
    if (order := row_order(operation, len(values), heads)) is not None:
        return values[order.argsort()]
    if operation == MINUS_ONE:
        return values + 1
    if operation == LOG_NEGATED:
        return values.exp().neg()
    if operation == TRANSPOSED and values.dim() == 2:
        return values.t()
    if operation == INTERLEAVED and values.dim() == 3:
        return values.transpose(1, 2)
    if operation == UNSQUEEZED:
        return values.squeeze(0) if values.dim() == 2 else values.squeeze(1)
    return values


def join_parts(parts: Sequence[torch.Tensor], operation: str) -> torch.Tensor:
    """Join the parts of a parameter: gates and ups of experts, or keys and values of latent attention."""
    if operation == INTERLEAVED:
        return torch.stack(list(parts), -1).flatten(-2)
    if operation == JOINED:
        keys, values = parts
        return torch.cat([keys.transpose(1, 2), values], 1).flatten(0, 1)
    return torch.cat(list(parts), 1)


def split_parts(values: torch.Tensor, operation: str) -> tuple[torch.Tensor, ...]:
    """Split a parameter of experts [experts, outputs, inputs], or their biases, into gates and ups."""
    return (values[..., ::2], values[..., 1::2]) if operation == INTERLEAVED else values.chunk(2, 1)
