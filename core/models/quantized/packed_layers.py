"""Modules that replace a network's linear layers and embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn
from torch.nn import functional as F

from decodescope.core.models.quantized.card_quantization import card_kind, tensor_bytes
from decodescope.core.models.quantized.packed_matrices import (
    GROUP,
    Int4Matrix,
    Int8Matrix,
    extra_bytes_per_row,
    fits_int4,
    pack_int4,
    pack_int8,
    quantize_rows_into,
    split_vectors,
)
from decodescope.core.models.quantized.tensor_files import allocate_pages

if TYPE_CHECKING:
    import torch
    from torch import nn

    from decodescope.core.models.quantized.packed_matrices import Int4RowMatrix
    from decodescope.core.models.text import Network

PORTION = 2**18
"""Number of weights read and quantized to 8 bits at a time."""


class RowSource(Protocol):
    """A matrix whose rows can be read in portions: a tensor, or data in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice) -> torch.Tensor: ...


class PackedModule(nn.Module):
    """Base of packed modules: a placeholder parameter `weight` and a hash that identifies the packed numbers.

    `weight` has the shape in the file: on torch's meta device until `pack`, and afterwards a single expanded float32
    that is not a number, so that its shape, dtype and device are right and no result comes from it unseen.
    """

    weight: nn.Parameter
    is_embedding = False
    """Whether its rows are looked up."""
    bits = 0
    """Bits per weight of a linear layer; 0 for others."""
    file_format = ""
    """Format of the file whose blocks it uses; empty if it was packed when it was loaded."""
    content_hash = ""
    """Hash of the packed numbers; empty before there are any."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before `pack`, the bytes they will have."""
        raise NotImplementedError

    def pack(self, weights: RowSource) -> None:
        """Pack the weights of a file, of any float dtype, and replace the previous ones."""
        raise NotImplementedError

    def floats(self) -> torch.Tensor:
        """Return float32 weights in the shape that the file had."""
        raise NotImplementedError

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack weights already in 8 bits: int8 [rows, width] and float32 [rows]."""
        raise NotImplementedError

    def finish(self, *tensors: torch.Tensor) -> None:
        """Store the hash of the numbers and replace `weight` by its placeholder."""
        self.content_hash = hash_tensors(*tensors)
        self.replace_weight()

    def replace_weight(self) -> None:
        """Replace `weight` by its placeholder."""
        nothing = torch.full((1, 1), torch.nan, dtype=torch.float32, device="cpu").expand(self.weight.shape)
        self.weight = nn.Parameter(nothing, requires_grad=False)
        self.weight._is_hf_initialized = True  # type: ignore[attr-defined]  # else transformers draws random numbers


class PackedLinear(PackedModule):
    """y = x Wᵀ + b with W [outputs, inputs] in 8 or 4 bits; x has any float dtype, and y the same."""

    bias: nn.Parameter | None

    def __init__(
        self, outputs: int, inputs: int, bits: int, bias: nn.Parameter | None, transposed: bool = False
    ) -> None:
        super().__init__((inputs, outputs) if transposed else (outputs, inputs))
        self.out_features, self.in_features = outputs, inputs
        self.bits = bits if fits_int4(outputs, inputs) else 8
        self.transposed = transposed
        """Whether the file contains Wᵀ (GPT-2's Conv1D)."""
        self.bias = bias
        self.int8_matrix: Int8Matrix | None = None
        self.int4_matrix: Int4Matrix | Int4RowMatrix | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weights; before `pack`, the bytes they will have."""
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
        """Pack the weights of a file, [outputs, inputs] or transposed, of any float dtype, and replace the previous
        ones.
        """
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

    def floats(self) -> torch.Tensor:
        """Return float32 weights, the products with unit vectors; transposed if the file's are."""
        units = torch.eye(self.in_features)
        if self.int4_matrix is not None:
            columns = self.int4_matrix.multiply(units)
        elif self.int8_matrix is not None:
            columns = self.int8_matrix.multiply_split(*split_vectors(units))
        else:
            return torch.empty(self.weight.shape, device="meta")
        return columns if self.transposed else columns.t()

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Pack weights already in 8 bits: int8 [outputs, inputs] and float32 [outputs]."""
        self.int8_matrix, self.int4_matrix = pack_int8(numbers, scales), None
        self.finish(numbers, scales)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [.., outputs] of vectors [.., inputs]."""
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
        """Describe the layer as torch does a linear layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bits={self.bits}"


class PackedEmbedding(PackedModule):
    """Embedding rows in 8 bits, each with its own scale; returned in `dtype`, multiplied by `factor`."""

    is_embedding = True

    def __init__(self, rows: int, width: int, dtype: torch.dtype, padding: int | None, factor: float) -> None:
        super().__init__((rows, width))
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, width, padding
        self.dtype, self.factor = dtype, factor
        self.numbers: torch.Tensor | None = None
        self.scales: torch.Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes: one per number, four per row."""
        return self.num_embeddings * (self.embedding_dim + 4)

    def pack(self, weights: RowSource) -> None:
        """Quantize and store [rows, width] of any float dtype."""
        self.set_quantized(*quantize_matrix(weights))

    def floats(self) -> torch.Tensor:
        """Return float32 [rows, width]."""
        if self.numbers is None or self.scales is None:
            return torch.empty(self.weight.shape, device="meta")
        return self.numbers.float().mul_(self.scales[:, None])

    def set_quantized(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        """Store int8 [rows, width] and float32 [rows]."""
        self.numbers, self.scales = numbers, scales
        self.finish(numbers, scales)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return [.., width] of ids [..]."""
        if self.numbers is None or self.scales is None:
            return torch.empty(*ids.shape, self.embedding_dim, dtype=self.dtype, device=ids.device)
        rows = self.numbers[ids].float().mul_(self.scales[ids].unsqueeze(-1)).to(self.dtype)
        return rows if self.factor == 1 else rows.mul_(self.factor)


class ExpertBank(nn.Module):
    """Base of experts whose weights are no parameters of the module."""

    content_hash = ""
    """Identifies the weights; empty before there are any."""

    @property
    def numbers(self) -> int:
        """Number of weights."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        raise NotImplementedError

    def floats(self) -> torch.Tensor:
        """Return the float32 parameter that it replaces."""
        raise NotImplementedError


def quantize_matrix(rows: RowSource) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize a matrix [n, K] to int8 numbers and scales, one portion at a time."""
    count, width = rows.shape
    numbers, scales = allocate_pages((count, width), torch.int8), torch.empty(count)
    step = min(max(1, PORTION // width), count)
    scratch = allocate_pages((step, width), torch.float32)
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        quantize_rows_into(rows[part], numbers[part], scales[part], scratch[: part.stop - start])
    return numbers, scales


def hash_tensors(*tensors: torch.Tensor) -> str:
    """Return a hash of all bytes of these tensors."""
    total = hashlib.blake2b(digest_size=32)
    for tensor in tensors:
        total.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return total.hexdigest()


class PackedExperts(nn.Module):
    """Replaces a parameter [experts, outputs, inputs] of a module; indexing returns what `F.linear` accepts for one
    expert.
    """

    def __init__(self, experts: int, outputs: int, inputs: int, bits: int) -> None:
        super().__init__()
        self.experts = nn.ModuleList(PackedLinear(outputs, inputs, bits, None) for _ in range(experts))

    def pack(self, weights: torch.Tensor) -> None:
        """Pack weights [experts, outputs, inputs]."""
        for number, rows in enumerate(weights):
            self._layer(number).pack(rows)

    def floats(self) -> torch.Tensor:
        """Return float32 weights [experts, outputs, inputs]."""
        return torch.stack([self._layer(number).floats() for number in range(len(self.experts))])

    def __getitem__(self, expert: int | torch.Tensor) -> ExpertWeights:
        return ExpertWeights(self._layer(int(expert)))

    def _layer(self, number: int) -> PackedLinear:
        layer = self.experts[number]
        assert isinstance(layer, PackedLinear)
        return layer


_MATMULS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


class ExpertWeights:
    """Weights of one expert, which multiply vectors by `product`: with `F.linear`, or with `@` if `transposed`."""

    def __init__(self, product: Callable[[torch.Tensor], torch.Tensor], transposed: bool = False) -> None:
        self.product, self._functions = product, _MATMULS if transposed else (F.linear,)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., object], types: Sequence[type], args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:  # fmt: skip
        """Handle torch functions called with this object as the second of two factors."""
        if kwargs or len(args) != 2:
            return NotImplemented
        vectors, weights = args
        if not isinstance(vectors, torch.Tensor) or not isinstance(weights, cls):
            return NotImplemented
        if function not in weights._functions:
            return NotImplemented
        return weights.product(vectors)


def count_weights(network: Network) -> int:
    """Return the number of weights, counting tied ones once, also an embedding that is packed again as the output
    head.
    """
    shared = _duplicates(network)
    banked = sum(module.numbers for module in network.modules() if isinstance(module, ExpertBank))
    return sum(p.numel() for p in network.parameters()) + banked - sum(module.weight.numel() for module in shared)


def weight_bytes(network: Network) -> int:
    """Return the bytes in memory; for quantized checkpoints, including the buffers with codes and scales."""
    packed = _packed_modules(network)
    placeholders = {id(module.weight) for module in packed}
    floats = (p for p in network.parameters() if id(p) not in placeholders)
    shared = _shared_blocks(network)
    plain = sum(map(tensor_bytes, floats))
    plain += sum(module.nbytes for module in packed if module not in shared)
    plain += sum(module.nbytes for module in network.modules() if isinstance(module, ExpertBank))
    if packed or getattr(network.config, "quantization_config", None) is None:
        return plain
    return plain + sum(buffer.numel() * buffer.element_size() for buffer in _stored_buffers(network))


def _shared_blocks(network: Network) -> list[PackedModule]:
    """Return the modules that use the same blocks of a GGUF file as the first embedding."""
    return [module for module in _duplicates(network) if module.file_format]


def _stored_buffers(network: Network) -> list[torch.Tensor]:
    """Return the buffers that are part of the stored weights."""
    return [
        buffer
        for module in network.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    ]


def packed_kind(network: nn.Module) -> str | None:
    """Return int8, int4 or fp8 if the layers are packed, the format of a GGUF file (Q4_K_M) if they use its blocks,
    otherwise None.
    """
    if (on_card := card_kind(network)) is not None:
        return on_card
    if named := next((module.file_format for module in _packed_modules(network) if module.file_format), ""):
        return named
    bits = packed_bits(network.modules())
    return f"int{bits}" if bits else None


def packed_bits(modules: Iterable[nn.Module]) -> int | None:
    """Return the minimum bits of the packed layers among these modules; None without any."""
    return min((module.bits for module in modules if isinstance(module, PackedModule) and module.bits), default=None)


def is_tied(network: Network) -> bool:
    """Return whether input embedding and output head share their weights."""
    words = network.get_input_embeddings()
    head: nn.Module = network.get_output_embeddings()
    if isinstance(head, PackedModule):
        return bool(network.config.get_text_config(decoder=True).tie_word_embeddings)
    return words.weight is head.weight


def content_hashes(modules: Iterable[nn.Module]) -> str:
    """Return a string that changes with every packed number."""
    return " ".join(module.content_hash for module in modules if isinstance(module, (PackedModule, ExpertBank)))


def _packed_modules(network: nn.Module) -> list[PackedModule]:
    return [module for module in network.modules() if isinstance(module, PackedModule)]


def _duplicates(network: Network) -> list[PackedModule]:
    """Return the packed heads and embeddings that duplicate the first embedding."""
    tables = [m for m in _packed_modules(network) if m.is_embedding]
    head: nn.Module = network.get_output_embeddings()
    return [*tables[1:], *([head] if tables and isinstance(head, PackedModule) and is_tied(network) else [])]
