"""Modules whose weights stay in the blocks of a GGUF file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import nn

from decodescope.core.models.gguf.architectures import INTERLEAVED
from decodescope.core.models.gguf.block_formats import dequantize
from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.models.gguf.gguf_file import BlockFormat, GgufFile, GgufTensor
from decodescope.core.models.gguf.tensor_operations import (
    HeadCounts,
    join_parts,
    parameter_shape,
    restore_numbers,
    restore_shape,
    row_order,
)
from decodescope.core.models.quantized.packed_layers import ExpertBank, ExpertWeights, PackedModule

_PORTION = 2**20
"""Weights dequantized at a time."""


class GgufParameter:
    """A tensor of the file with what undoes the converter's operation; the blocks are a view of the mapped file.

    Indexing with `...` returns itself, as transformers does with everything that it loads.
    """

    def __init__(self, file: GgufFile, tensor: GgufTensor, operation: str, heads: HeadCounts) -> None:
        self.tensor, self.operation, self._file, self._heads = tensor, operation, file, heads

    @property
    def fmt(self) -> BlockFormat:
        """Format of the blocks."""
        return self.tensor.fmt

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameter in transformers."""
        return parameter_shape(self.tensor.shape, self.operation)

    @property
    def stamp(self) -> str:
        """Identifies the content by the file, its time and size, and the position in it."""
        about = self.tensor.file.stat()
        return f"{self.tensor.file}:{about.st_mtime_ns}:{about.st_size}:{self.tensor.start}:{self.operation}"

    def blocks(self) -> torch.Tensor:
        """Return uint8 [rows, row bytes] with the rows in transformers' order; a copy only if they are reordered."""
        rows = self._rows()
        order = self._row_order(len(rows)) if len(self.tensor.shape) == 2 else None
        return rows if order is None else rows[order]

    def floats(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return the parameter, in portions dequantized to `dtype`."""
        rows, shape = self.blocks(), self.tensor.shape
        is_aligned = self.tensor.start % 4 == 0
        if self.fmt.name == "F32" and dtype == torch.float32 and not self.operation and is_aligned:
            return rows.view(torch.float32).view(shape)
        found = torch.empty(len(rows), shape[-1], dtype=dtype)
        step = max(1, _PORTION // shape[-1])
        for start in range(0, len(rows), step):
            part = dequantize(rows[start : start + step], self.fmt)
            found[start : start + step] = restore_numbers(part, self.operation)
        whole = restore_shape(found.view(shape), self.operation)
        order = self._row_order(len(whole)) if len(shape) == 1 else None
        return whole if order is None else whole[order]

    def _rows(self) -> torch.Tensor:
        """Return uint8 [rows, row bytes] as the file has them; of a vector, one row."""
        width = self.tensor.shape[-1]
        data = torch.frombuffer(self._file.data(self.tensor), dtype=torch.uint8)
        return data.view(-1, self.fmt.row_bytes(width)) if len(self.tensor.shape) > 1 else data.view(1, -1)

    def _row_order(self, count: int) -> torch.Tensor | None:
        return row_order(self.operation, count, self._heads)


class GgufModule(PackedModule):
    """Base of modules that multiply or look up blocks."""

    file_format = ""
    """The mixture of formats of the file that the blocks come from."""
    matrix: BlockMatrix | None = None
    transposed = False
    """Whether the module's weights are the transposed matrix (GPT-2's Conv1D)."""

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return self.matrix.nbytes if self.matrix is not None else 0

    def floats(self) -> torch.Tensor:
        """Return float32 weights in transformers' shape."""
        if self.matrix is None:
            return torch.empty(self.weight.shape, device="meta")
        whole = dequantize(self.matrix.blocks, self.matrix.fmt)
        return whole.t() if self.transposed else whole

    def set_blocks(self, stored: GgufParameter) -> None:
        """Use the blocks of a stored matrix."""
        self.matrix = BlockMatrix(stored.blocks(), stored.fmt, stored.tensor.shape[-1])
        self.content_hash = stored.stamp
        if self.bits:
            self.bits = 8 * stored.fmt.block_bytes // stored.fmt.block_weights
        self.replace_weight()


class GgufLinear(GgufModule):
    """y = x Wᵀ + b with W [outputs, inputs] in blocks; x has any float dtype, and y the same."""

    bias: nn.Parameter | None

    def __init__(self, outputs: int, inputs: int, bias: nn.Parameter | None, transposed: bool = False) -> None:
        super().__init__((inputs, outputs) if transposed else (outputs, inputs))
        self.out_features, self.in_features, self.bias, self.transposed = outputs, inputs, bias, transposed
        self.bits = 16

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [.., outputs] of vectors [.., inputs]."""
        if self.matrix is None:
            product = torch.empty(vectors.shape[:-1].numel(), self.out_features, device=vectors.device)
        else:
            product = self.matrix.multiply(vectors.reshape(-1, self.in_features).float())
        if self.bias is not None:
            product = product.add_(self.bias)
        return product.view(*vectors.shape[:-1], self.out_features).to(vectors.dtype)

    def extra_repr(self) -> str:
        """Describe the layer as torch does a linear layer."""
        name = "" if self.matrix is None else self.matrix.fmt.name
        return f"in_features={self.in_features}, out_features={self.out_features}, format={name}"


class GgufEmbedding(GgufModule):
    """Embedding rows in blocks; returned in `dtype`, multiplied by `factor`."""

    is_embedding = True

    def __init__(self, rows: int, width: int, dtype: torch.dtype, padding: int | None, factor: float) -> None:
        super().__init__((rows, width))
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, width, padding
        self.dtype, self.factor = dtype, factor

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return [.., width] of ids [..]."""
        if self.matrix is None:
            return torch.empty(*ids.shape, self.embedding_dim, dtype=self.dtype, device=ids.device)
        rows = self.matrix.rows(ids).to(self.dtype)
        return rows if self.factor == 1 else rows.mul_(self.factor)


class GgufExperts(ExpertBank):
    """Replaces a parameter [experts, outputs, inputs] of a module; indexing returns what `F.linear` accepts for one
    expert. `parts`: one stored tensor [experts, outputs, inputs], or that of gates and that of ups.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[BlockMatrix]] = []
        """Matrices of the experts, for each stored tensor."""
        self._interleaved = False

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return sum(matrix.nbytes for part in self.parts for matrix in part)

    @property
    def numbers(self) -> int:
        """Number of weights."""
        return sum(matrix.outputs * matrix.inputs for part in self.parts for matrix in part)

    def set_blocks(self, parts: Sequence[GgufParameter]) -> None:
        """Use the blocks of the stored tensors."""
        self.parts = []
        self._interleaved = parts[0].operation == INTERLEAVED
        for stored in parts:
            experts, outputs, inputs = stored.tensor.shape
            rows = stored.blocks().view(experts, outputs, -1)
            self.parts.append([BlockMatrix(one, stored.fmt, inputs) for one in rows])
        self.content_hash = " ".join(stored.stamp for stored in parts)

    def floats(self) -> torch.Tensor:
        """Return the float32 parameter: [experts, outputs, inputs], or as GPT-OSS has it."""
        parts = [torch.stack([dequantize(one.blocks, one.fmt) for one in part]) for part in self.parts]
        if self._interleaved:
            parts = [part.transpose(1, 2) for part in parts]
        return parts[0] if len(parts) == 1 else join_parts(parts, INTERLEAVED if self._interleaved else "")

    def __getitem__(self, expert: int | torch.Tensor) -> ExpertWeights:
        matrices = [part[int(expert)] for part in self.parts]
        return ExpertWeights(partial(_multiply_joined, matrices, self._interleaved), self._interleaved)


def _multiply_joined(matrices: Sequence[BlockMatrix], interleaved: bool, vectors: torch.Tensor) -> torch.Tensor:
    """Return the products of vectors [.., inputs] with each matrix, side by side or taking turns."""
    flat = vectors.reshape(-1, vectors.shape[-1]).float()
    products = [matrix.multiply(flat) for matrix in matrices]
    product = torch.stack(products, -1) if interleaved else torch.cat(products, -1)
    return product.view(*vectors.shape[:-1], -1).to(vectors.dtype)
