"""Modules that stand where a network had a linear layer or a table of embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn
from torch.nn import functional as F

from core.models.quantized.packed_matrices import (
    GROUP,
    Int4Matrix,
    Int8Matrix,
    extra_bytes_per_row,
    fits_int4,
    pack_int4,
    pack_int8,
    quantize_rows,
    split_vectors,
)
from core.models.quantized.tensor_files import allocate_pages

if TYPE_CHECKING:
    import torch
    from torch import nn

    from core.models.quantized.packed_matrices import Int4RowMatrix
    from core.models.text import Network

PORTION = 2**19
"""Weights that are read and turned into eight bits at a time."""


class RowSource(Protocol):
    """A matrix whose rows can be had in portions: a tensor, or what still lies in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice) -> torch.Tensor: ...


class PackedModule(nn.Module):
    """What is common: numbers without memory of their own under `weight`, and a seal that tells them from others.

    `weight` has the shape that the file has: without memory (on torch's meta device) until `pack`, and from then on a
    single byte that is shown everywhere, so that whoever asks for shape, type or device gets the right answer.
    """

    weight: nn.Parameter
    content_hash = ""
    """Changes with every number; empty before there are any."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before there are any, those that there will be."""
        raise NotImplementedError

    def pack(self, weights: RowSource) -> None:
        """Pack what a file holds, of any float type; what was there is forgotten."""
        raise NotImplementedError

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack what is in eight bits already: int8 [rows, width] and float32 [rows]."""
        raise NotImplementedError

    def finish(self, *tensors: torch.Tensor) -> None:
        """Remember which numbers these are."""
        self.content_hash = hash_tensors(*tensors)
        nothing = torch.zeros(1, 1, dtype=torch.int8).expand(self.weight.shape)
        self.weight = nn.Parameter(nothing, requires_grad=False)
        self.weight._is_hf_initialized = True  # type: ignore[attr-defined]  # else transformers draws random numbers


class PackedLinear(PackedModule):
    """y = x Wᵀ + b with W [outputs, inputs] in eight or four bits; x of any float type, which y gets too."""

    bias: nn.Parameter | None

    def __init__(
        self, outputs: int, inputs: int, bits: int, bias: nn.Parameter | None, transposed: bool = False
    ) -> None:
        super().__init__((inputs, outputs) if transposed else (outputs, inputs))
        self.out_features, self.in_features = outputs, inputs
        self.bits = bits if fits_int4(outputs, inputs) else 8
        self.transposed = transposed
        """The file holds Wᵀ (GPT-2's Conv1D)."""
        self.bias = bias
        self.int8_matrix: Int8Matrix | None = None
        self.int4_matrix: Int4Matrix | Int4RowMatrix | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before there are any, those that there will be."""
        matrix = self.int8_matrix or self.int4_matrix
        if matrix is not None:
            return matrix.nbytes
        numbers = self.out_features * self.in_features
        return (
            numbers + extra_bytes_per_row() * self.out_features
            if self.bits == 8
            else numbers // 2 + 4 * (numbers // GROUP)
        )

    def pack(self, weights: RowSource) -> None:
        """Pack what a file holds, [outputs, inputs] or turned, of any float type; what was there is forgotten."""
        if self.bits == 8 and not self.transposed:
            self.set_quantized(*quantize_matrix(weights))
            return
        whole = weights[:].t() if self.transposed else weights[:]
        if self.bits == 8:
            self.set_quantized(*quantize_matrix(whole))
        else:
            packed = pack_int4(whole)
            self.int8_matrix, self.int4_matrix = None, packed
            self.finish(*packed.tensors)

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack what is in eight bits already: int8 [outputs, inputs] and float32 [outputs]."""
        self.int8_matrix, self.int4_matrix = pack_int8(numbers, scales), None
        self.finish(numbers, scales)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """[.., outputs] of vectors [.., inputs]."""
        if self.int4_matrix is not None:
            product = self.int4_matrix.multiply(vectors.reshape(-1, self.in_features))
        elif self.int8_matrix is not None:
            product = self.int8_matrix.multiply_split(*split_vectors(vectors.reshape(-1, self.in_features).float()))
        else:
            product = torch.empty(vectors.shape[:-1].numel(), self.out_features, device=vectors.device)
        if self.bias is not None:
            product = product.add_(self.bias)
        return product.view(*vectors.shape[:-1], self.out_features).to(vectors.dtype)

    def extra_repr(self) -> str:
        """As torch shows a linear layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bits={self.bits}"


class PackedEmbedding(PackedModule):
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

    def pack(self, weights: RowSource) -> None:
        """Keep [rows, width] of any float type."""
        self.set_quantized(*quantize_matrix(weights))

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Keep int8 [rows, width] and float32 [rows]."""
        self.numbers, self.scales = numbers, scales
        self.finish(numbers, scales)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[.., width] of ids [..]."""
        if self.numbers is None or self.scales is None:
            return torch.empty(*ids.shape, self.embedding_dim, dtype=self.dtype, device=ids.device)
        rows = self.numbers[ids].float().mul_(self.scales[ids].unsqueeze(-1)).to(self.dtype)
        return rows if self.factor == 1 else rows.mul_(self.factor)


def quantize_matrix(rows: RowSource) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 numbers and scales of a matrix [n, K], a portion at a time."""
    count, width = rows.shape
    numbers, scales = allocate_pages((count, width), torch.int8), torch.empty(count)
    step = max(1, PORTION // width)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        numbers[part], scales[part] = quantize_rows(rows[part])
    return numbers, scales


def hash_tensors(*tensors: torch.Tensor) -> str:
    """A hash that changes with every byte of these tensors."""
    total = hashlib.blake2b(digest_size=32)
    for tensor in tensors:
        total.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return total.hexdigest()


class PackedExperts(nn.Module):
    """Stands where a module has a parameter [experts, outputs, inputs]; `bank[e]` is what `F.linear` takes for one."""

    def __init__(self, experts: int, outputs: int, inputs: int, bits: int) -> None:
        super().__init__()
        self.experts = nn.ModuleList(PackedLinear(outputs, inputs, bits, None) for _ in range(experts))

    def pack(self, weights: torch.Tensor) -> None:
        """Pack [experts, outputs, inputs]."""
        for number, rows in enumerate(weights):
            self[number].layer.pack(rows)

    def __getitem__(self, expert: int | torch.Tensor) -> _ExpertWeights:
        layer = self.experts[int(expert)]
        assert isinstance(layer, PackedLinear)
        return _ExpertWeights(layer)


class _ExpertWeights:
    """One expert's weights, as `F.linear` takes them; nothing else can be done with them."""

    def __init__(self, layer: PackedLinear) -> None:
        self.layer = layer

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., object], types: Sequence[type], args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:  # fmt: skip
        """Every function of torch that meets one of these asks here instead."""
        if function is not F.linear or not isinstance(args[1], cls) or kwargs or len(args) > 2:
            return NotImplemented
        return args[1].layer(args[0])


def count_weights(network: Network) -> int:
    """Numbers, shared ones once: also an embedding that is kept again, packed, as the head."""
    shared = _duplicates(network)
    return sum(p.numel() for p in network.parameters()) - sum(module.weight.numel() for module in shared)


def weight_bytes(network: Network) -> int:
    """Bytes in memory; with a quantization of the folder's own, also the buffers that hold its codes and scales."""
    packed = _packed_modules(network)
    placeholders = {id(module.weight) for module in packed}
    floats = (p for p in network.parameters() if id(p) not in placeholders)
    plain = sum(p.numel() * p.element_size() for p in floats) + sum(module.nbytes for module in packed)
    if packed or getattr(network.config, "quantization_config", None) is None:
        return plain
    return plain + sum(buffer.numel() * buffer.element_size() for buffer in _stored_buffers(network))


def _stored_buffers(network: Network) -> list[torch.Tensor]:
    """Return the buffers that are part of the stored weights."""
    return [
        buffer
        for module in network.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    ]


def packed_kind(network: nn.Module) -> str | None:
    """int8 or int4, where its layers are packed."""
    bits = packed_bits(network.modules())
    return f"int{bits}" if bits else None


def packed_bits(modules: Iterable[nn.Module]) -> int | None:
    """Fewest bits of the packed layers among these; None where there are none."""
    return min((module.bits for module in modules if isinstance(module, PackedLinear)), default=None)


def is_tied(network: Network) -> bool:
    """Whether input and output share their weights."""
    words = network.get_input_embeddings()
    head: nn.Module = network.get_output_embeddings()
    if isinstance(head, PackedModule):
        return bool(network.config.get_text_config(decoder=True).tie_word_embeddings)
    return words.weight is head.weight


def content_hashes(modules: Iterable[nn.Module]) -> str:
    """What changes with every packed number."""
    return " ".join(module.content_hash for module in modules if isinstance(module, PackedModule))


def _packed_modules(network: nn.Module) -> list[PackedModule]:
    return [module for module in network.modules() if isinstance(module, PackedModule)]


def _duplicates(network: Network) -> list[PackedModule]:
    """Heads and tables beyond the first that hold the same numbers as a table does."""
    tables = [m for m in _packed_modules(network) if isinstance(m, PackedEmbedding)]
    head: nn.Module = network.get_output_embeddings()
    return [*tables[1:], *([head] if tables and isinstance(head, PackedModule) and is_tied(network) else [])]
