"""Modules that stand where a network had a linear layer or a table of embeddings."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

from core.models.quantized.int4 import GROUP, Int4Matrix, fits_four, pack_four
from core.models.quantized.int8 import Int8Matrix, bytes_beside, pack_eight, quantize_rows, split
from core.models.quantized.page_buffers import paged

if TYPE_CHECKING:
    from core.models.quantized.int4_rows import Int4Rows

PORTION = 2**19
"""Weights that are read and turned into eight bits at a time."""


class RowSource(Protocol):
    """A matrix whose rows can be had in portions: a tensor, or what still lies in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice) -> torch.Tensor: ...


class Packed(nn.Module):
    """What is common: numbers without memory of their own under `weight`, and a seal that tells them from others.

    `weight` has the shape that the file has: without memory (on torch's meta device) until `fill`, and from then on a
    single byte that is shown everywhere, so that whoever asks for shape, type or device gets the right answer.
    """

    weight: nn.Parameter
    seal = ""
    """Changes with every number; empty before there are any."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before there are any, those that there will be."""
        raise NotImplementedError

    def fill(self, weights: RowSource) -> None:
        """Pack what a file holds, of any float type; what was there is forgotten."""
        raise NotImplementedError

    def take(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack what is in eight bits already: int8 [rows, width] and float32 [rows]."""
        raise NotImplementedError

    def close(self, *tensors: torch.Tensor) -> None:
        """Remember which numbers these are."""
        self.seal = seal_of(*tensors)
        nothing = torch.zeros(1, 1, dtype=torch.int8).expand(self.weight.shape)
        self.weight = nn.Parameter(nothing, requires_grad=False)
        self.weight._is_hf_initialized = True  # type: ignore[attr-defined]  # else transformers draws random numbers


class PackedLinear(Packed):
    """y = x Wᵀ + b with W [outputs, inputs] in eight or four bits; x of any float type, which y gets too."""

    bias: nn.Parameter | None

    def __init__(self, outputs: int, inputs: int, bits: int, bias: nn.Parameter | None, turned: bool = False) -> None:
        super().__init__((inputs, outputs) if turned else (outputs, inputs))
        self.out_features, self.in_features = outputs, inputs
        self.bits = bits if fits_four(outputs, inputs) else 8
        self.turned = turned
        """The file holds Wᵀ (GPT-2's Conv1D)."""
        self.bias = bias
        self.eight: Int8Matrix | None = None
        self.four: Int4Matrix | Int4Rows | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before there are any, those that there will be."""
        matrix = self.eight or self.four
        if matrix is not None:
            return matrix.nbytes
        numbers = self.out_features * self.in_features
        return numbers + bytes_beside() * self.out_features if self.bits == 8 else numbers // 2 + 4 * (numbers // GROUP)

    def fill(self, weights: RowSource) -> None:
        """Pack what a file holds, [outputs, inputs] or turned, of any float type; what was there is forgotten."""
        if self.bits == 8 and not self.turned:
            self.take(*quantize(weights))
            return
        whole = weights[:].t() if self.turned else weights[:]
        if self.bits == 8:
            self.take(*quantize(whole))
        else:
            packed = pack_four(whole)
            self.eight, self.four = None, packed
            self.close(*packed.tensors)

    def take(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack what is in eight bits already: int8 [outputs, inputs] and float32 [outputs]."""
        self.eight, self.four = pack_eight(numbers, scales), None
        self.close(numbers, scales)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """[.., outputs] of vectors [.., inputs]."""
        if self.four is not None:
            product = self.four.of(vectors.reshape(-1, self.in_features))
        elif self.eight is not None:
            product = self.eight.of_split(*split(vectors.reshape(-1, self.in_features).float()))
        else:
            product = torch.empty(vectors.shape[:-1].numel(), self.out_features, device=vectors.device)
        if self.bias is not None:
            product = product.add_(self.bias)
        return product.view(*vectors.shape[:-1], self.out_features).to(vectors.dtype)

    def extra_repr(self) -> str:
        """As torch shows a linear layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bits={self.bits}"


class PackedEmbedding(Packed):
    """Rows in eight bits, each with a scale of its own; given out in `dtype`, times `factor`."""

    def __init__(self, rows: int, width: int, dtype: torch.dtype, padding: int | None, factor: float) -> None:
        super().__init__((rows, width))
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, width, padding
        self.dtype, self.factor = dtype, factor
        self.numbers: torch.Tensor | None = None
        self.scales: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """One byte a number, four a row."""
        return self.num_embeddings * (self.embedding_dim + 4)

    def fill(self, weights: RowSource) -> None:
        """Keep [rows, width] of any float type."""
        self.take(*quantize(weights))

    def take(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Keep int8 [rows, width] and float32 [rows]."""
        self.numbers, self.scales = numbers, scales
        self.close(numbers, scales)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[.., width] of ids [..]."""
        if self.numbers is None or self.scales is None:
            return torch.empty(*ids.shape, self.embedding_dim, dtype=self.dtype, device=ids.device)
        rows = self.numbers[ids].float().mul_(self.scales[ids].unsqueeze(-1)).to(self.dtype)
        return rows if self.factor == 1 else rows.mul_(self.factor)


def quantize(rows: RowSource) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 numbers and scales of a matrix [n, K], a portion at a time."""
    count, width = rows.shape
    numbers, scales = paged((count, width), torch.int8), torch.empty(count)
    step = max(1, PORTION // width)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        numbers[part], scales[part] = quantize_rows(rows[part])
    return numbers, scales


def seal_of(*tensors: torch.Tensor) -> str:
    """A hash that changes with every byte of these tensors."""
    total = hashlib.blake2b(digest_size=32)
    for tensor in tensors:
        total.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return total.hexdigest()
