"""Layers of a fused pass: norms, linear maps and MLPs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from transformers.integrations.moe import batched_mm_experts_forward
from transformers.pytorch_utils import Conv1D

from decodescope.core.models.adapters.low_rank_path import LowRankPath, low_rank_path
from decodescope.core.models.devices import PROMPT_ROWS, is_bfloat16_faster
from decodescope.core.models.gguf.block_layers import GgufExperts, GgufLinear
from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.models.quantized.card_quantization import is_quantized_tensor
from decodescope.core.models.quantized.packed_layers import PackedExperts, PackedLinear
from decodescope.core.models.quantized.packed_matrices import Int4RowMatrix, Int8Matrix, split_vectors
from decodescope.core.native.native_library import WEIGHTS, MatrixStruct, NativeLibrary, library
from decodescope.core.native.tensor_address import optional_address, tensor_address

WeightAndBias = tuple[torch.Tensor, torch.Tensor | None]
"""Weights [outputs, inputs] and their bias [outputs]."""


_MIN_NATIVE_VECTORS = 16
"""Minimum number of vectors for which packing a matrix into panels pays off."""
_BENCHMARK_SIZE = 512
"""Size of the benchmark matrix: too large for the nearest CPU cache."""
_BENCHMARK_RUNS = 5


def linear(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Apply `F.linear`, through the native library where it is built and faster on this CPU.

    Only with one thread, as small models use: torch's other threads spin between two products and would block the
    library's.
    """
    rows = hidden.numel() // hidden.shape[-1]
    if (
        rows < _MIN_NATIVE_VECTORS
        or torch.get_num_threads() > 1
        or not _is_plain_float32(hidden)
        or not _is_plain_float32(weight)
    ):
        return F.linear(hidden, weight, bias)
    native = library()
    if native is None or not _is_native_faster(native):
        return F.linear(hidden, weight, bias)
    return NativeLinear(native, [(weight, bias)])(hidden.view(rows, -1)).view(*hidden.shape[:-1], -1)


def _is_plain_float32(tensor: torch.Tensor) -> bool:
    """Return whether the tensor is a contiguous float32 CPU tensor that needs no gradient."""
    is_float = tensor.dtype is torch.float32 and tensor.device.type == "cpu"
    return is_float and tensor.is_contiguous() and not (tensor.requires_grad and torch.is_grad_enabled())


@functools.cache
def _is_native_faster(native: NativeLibrary) -> bool:
    """Return whether it gives the same result in less time than torch, which is optimized better for some CPUs than for
    others.
    """
    generator = torch.Generator().manual_seed(0)  # the numbers of the caller are not used up
    vectors, weight = (
        torch.rand(rows, _BENCHMARK_SIZE, generator=generator) for rows in (4 * _MIN_NATIVE_VECTORS, _BENCHMARK_SIZE)
    )
    product = NativeLinear(native, [(weight, None)])
    if not torch.allclose(product(vectors), F.linear(vectors, weight), rtol=1e-4):
        return False
    ours, theirs = [], []
    for _ in range(_BENCHMARK_RUNS):
        begun = time.perf_counter()
        product(vectors)
        between = time.perf_counter()
        F.linear(vectors, weight)
        ours.append(between - begun)
        theirs.append(time.perf_counter() - between)
    return min(ours) < min(theirs)


class NativeLinear:
    """Linear maps of one input with concatenated outputs."""

    def __init__(self, native: NativeLibrary, pairs: Sequence[WeightAndBias]) -> None:
        self._library = native
        self._weights = [(weight.contiguous(), bias) for weight, bias in pairs]
        self._matrices = [_matrix(*pair) for pair in self._weights]
        self._outputs = sum(matrix.outputs for matrix in self._matrices)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [n, outputs] of contiguous vectors [n, inputs]."""
        found = vectors.new_empty(len(vectors), self._outputs)
        self._multiply(vectors, found, False)
        return found

    def add_to(self, output: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Add the product to `output` [n, outputs], contiguous, in place and return it."""
        self._multiply(vectors, output, True)
        return output

    def _multiply(self, vectors: torch.Tensor, output: torch.Tensor, accumulate: bool) -> None:
        rows = len(vectors)
        place = tensor_address(output, torch.float32, rows * self._outputs)
        for matrix in self._matrices:
            self._library.matmul(
                matrix,
                tensor_address(vectors, torch.float32, rows * matrix.inputs),
                rows,
                place,
                self._outputs,
                accumulate,
                torch.get_num_threads(),
            )
            place += matrix.outputs * output.element_size()


class NativeGatedMlp:
    """silu(gate) · up, with two linear maps of one input."""

    def __init__(self, native: NativeLibrary, gate: torch.Tensor, up: torch.Tensor) -> None:
        self._library, self._weights = native, (gate.contiguous(), up.contiguous())
        self._gate, self._up = map(_matrix, self._weights)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return [n, outputs of one map] of contiguous vectors [n, inputs]."""
        found, rows = vectors.new_empty(len(vectors), self._gate.outputs), len(vectors)
        self._library.gated_matmul(
            self._gate, self._up, tensor_address(vectors, torch.float32, rows * self._gate.inputs), rows,
            tensor_address(found, torch.float32), torch.get_num_threads(),
        )  # fmt: skip
        return found


def _matrix(weight: torch.Tensor, bias: torch.Tensor | None = None) -> MatrixStruct:
    outputs, inputs = weight.shape
    return MatrixStruct(
        WEIGHTS["float32"],
        outputs,
        inputs,
        tensor_address(weight, torch.float32),
        optional_address(bias, torch.float32, outputs),
    )


_MIN_VECTORS = 8
"""Minimum number of vectors for which converting a matrix pays off."""
_CHUNK_WEIGHTS = 2**18
"""Weights converted at a time, few enough to stay in the CPU cache."""
TensorFunction = Callable[[torch.Tensor], torch.Tensor]
"""[.., D] → [.., E]."""


@dataclass(frozen=True, slots=True)
class TokenEmbedding:
    """A plain table of embeddings."""

    weight: torch.Tensor

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.embedding(self.weight, ids)


@dataclass(frozen=True, slots=True)
class RootMeanSquare:
    """x / √(mean x² + ε) · w; Gemma's modules store w − 1."""

    weight: torch.Tensor
    eps: float

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.rms_norm(hidden, self.weight.shape, self.weight, self.eps)


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """(x − mean) / √(variance + ε) · w + b."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    eps: float

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(hidden, self.weight.shape, self.weight, self.bias, self.eps)


def fuse_norm(module: nn.Module) -> TensorFunction:
    """Return an equivalent norm, found by probing the module with a few numbers; the module itself if none matches."""
    if type(module) is nn.LayerNorm:
        return LayerNorm(module.weight, module.bias, module.eps)
    weight = module._parameters.get("weight")
    eps = vars(module).get("variance_epsilon", vars(module).get("eps"))
    if weight is None or weight.dim() != 1 or not isinstance(eps, float):
        return module
    probe = torch.linspace(-1.5, 2.0, weight.shape[-1], dtype=weight.dtype, device=weight.device)
    expected = module(probe[None])[0]
    bias = module._parameters.get("bias")
    for candidate in (
        RootMeanSquare(weight, eps), RootMeanSquare(weight + 1, eps), LayerNorm(weight, bias, eps),
        LayerNorm(weight + 1, bias, eps),
    ):  # fmt: skip
        if torch.allclose(candidate(probe), expected, rtol=1e-2 if weight.dtype != torch.float32 else 1e-5, atol=1e-6):
            return candidate
    return module


@dataclass(frozen=True, slots=True)
class FloatLinear:
    """Linear maps of one input with concatenated outputs."""

    parts: tuple[WeightAndBias, ...]

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        product = _in_float32 if hidden.dtype is torch.bfloat16 and _is_better_in_float32(hidden) else linear
        if len(self.parts) == 1:
            return product(hidden, *self.parts[0])
        return torch.cat([product(hidden, *part) for part in self.parts], -1)


def _is_better_in_float32(hidden: torch.Tensor) -> bool:
    """Return whether these bfloat16 vectors are many on a CPU without bfloat16 instructions."""
    is_many = hidden.device.type == "cpu" and hidden.shape[:-1].numel() >= _MIN_VECTORS
    return is_many and not _has_bfloat16(torch.get_num_threads())


@functools.cache
def _has_bfloat16(threads: int) -> bool:
    return is_bfloat16_faster(PROMPT_ROWS)


def _in_float32(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return the same product, rounded once at the end; weights are converted in chunks."""
    exact, rows = hidden.float(), max(1, _CHUNK_WEIGHTS // weight.shape[1])
    parts = [F.linear(exact, some.float()) for some in torch.split(weight, rows)]
    joined = torch.cat(parts, -1)
    return (joined if bias is None else joined.add_(bias)).to(hidden.dtype)


@dataclass(frozen=True, slots=True)
class QuantizedLinears:
    """The same with int8 or row-wise int4 weights: the input is quantized once."""

    matrices: tuple[Int8Matrix | Int4RowMatrix, ...]
    biases: tuple[torch.Tensor | None, ...]

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        halves, steps = split_vectors(hidden.reshape(-1, hidden.shape[-1]))
        parts = [matrix.multiply_split(halves, steps) for matrix in self.matrices]
        return _join_products(parts, self.biases, hidden)


@dataclass(frozen=True, slots=True)
class BlockLinears:
    """The same with weights in the blocks of a GGUF file."""

    matrices: tuple[BlockMatrix, ...]
    biases: tuple[torch.Tensor | None, ...]

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        flat = hidden.reshape(-1, hidden.shape[-1])
        return _join_products([matrix.multiply(flat) for matrix in self.matrices], self.biases, hidden)


def _join_products(
    parts: Sequence[torch.Tensor], biases: Sequence[torch.Tensor | None], hidden: torch.Tensor
) -> torch.Tensor:
    """Add each bias to its product [n, D], in place, and return the products side by side in the shape of `hidden`."""
    for part, bias in zip(parts, biases, strict=True):
        if bias is not None:
            part.add_(bias)
    joined = parts[0] if len(parts) == 1 else torch.cat(list(parts), -1)
    return joined.view(*hidden.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class ModuleLinears:
    """The same through the original modules."""

    modules: tuple[nn.Module, ...]

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        parts: list[torch.Tensor] = [module(hidden) for module in self.modules]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


@dataclass(frozen=True, slots=True)
class AdaptedLinears:
    """Linear maps of one input with the paths of adapters beside them."""

    maps: TensorFunction
    paths: tuple[tuple[int, LowRankPath], ...]
    """Each with the first of the outputs that it changes."""

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        joined = self.maps(hidden)
        for first, path in self.paths:
            if path.is_active:
                part = joined[..., first : first + path.outputs]
                part.add_(path.change(part, hidden))
        return joined


def fuse_linears(modules: Sequence[nn.Module], copies: bool = False) -> TensorFunction:
    """Combine linear layers of one input into one map; `copies` allows concatenating float matrices."""
    maps = _fuse_maps(modules, copies)
    paths: list[tuple[int, LowRankPath]] = []
    first = 0
    for module in modules:
        path = low_rank_path(module)
        if path is not None:
            paths.append((first, path))
        first += int(getattr(module, "out_features", 0) or getattr(module, "nf", 0))
    return maps if not paths or isinstance(maps, ModuleLinears) else AdaptedLinears(maps, tuple(paths))


def _fuse_maps(modules: Sequence[nn.Module], copies: bool) -> TensorFunction:
    pairs = [_float_weights(module) for module in modules]
    floats = [pair for pair in pairs if pair is not None]
    if len(floats) == len(modules):
        return FloatLinear((join_weights(floats),) if copies else tuple(floats))
    blocks = [(module.matrix, module.bias) for module in modules if isinstance(module, GgufLinear)]
    stored = tuple(matrix for matrix, _ in blocks if matrix is not None)
    if len(stored) == len(modules):
        return BlockLinears(stored, tuple(bias for _, bias in blocks))
    packs = [(_quantized_matrix(module), module.bias) for module in modules if isinstance(module, PackedLinear)]
    matrices = tuple(matrix for matrix, _ in packs if matrix is not None)
    if len(matrices) == len(modules):
        return QuantizedLinears(matrices, tuple(bias for _, bias in packs))
    return ModuleLinears(tuple(modules))


def _quantized_matrix(module: PackedLinear) -> Int8Matrix | Int4RowMatrix | None:
    return module.int4_matrix if isinstance(module.int4_matrix, Int4RowMatrix) else module.int8_matrix


def _float_weights(module: nn.Module) -> WeightAndBias | None:
    if type(module) is nn.Linear:
        return None if is_quantized_tensor(module.weight) else (module.weight, module.bias)
    return (module.weight.t(), module.bias) if type(module) is Conv1D else None


def join_weights(pairs: Sequence[WeightAndBias]) -> WeightAndBias:
    """Concatenate matrices and biases; where only some have a bias, the others get zeros. One pair is not copied."""
    if len(pairs) == 1:
        return pairs[0]
    weight = torch.cat([weight for weight, _ in pairs])
    if all(bias is None for _, bias in pairs):
        return weight, None
    return weight, torch.cat([weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in pairs])


_ACTIVATIONS: dict[str, TensorFunction] = {
    "silu": F.silu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "relu": F.relu,
}


def activation_name(act: TensorFunction) -> str | None:
    """Identify an activation by probing it with a few numbers; None for an unknown one."""
    probe = torch.linspace(-4.0, 4.0, 64)
    found = act(probe)
    matches = (name for name, one in _ACTIVATIONS.items() if torch.allclose(one(probe), found, rtol=0, atol=2e-6))
    return next(matches, None)


@dataclass(frozen=True, slots=True)
class GatedMlp:
    """act(gate) · up, then down."""

    gate_up: TensorFunction
    down: TensorFunction
    act: TensorFunction

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(hidden).chunk(2, -1)
        return self.down(self.act(gate) * up)


@dataclass(frozen=True, slots=True)
class FeedForwardMlp:
    """Up, act, down."""

    up: TensorFunction
    down: TensorFunction
    act: TensorFunction

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.down(self.act(self.up(hidden)))


_MAX_COPIED_EXPERTS = 64
"""Maximum number of copied experts in one layer, those of several tokens counted repeatedly."""


@dataclass(frozen=True, slots=True)
class MixtureMlp:
    """A mixture of experts behind a router with a softmax, computed by its module.

    Each token goes through the `chosen` likeliest experts. Their outputs are added with the softmax as weights, which
    `is_normalized` divides by their sum. A GPU multiplies few tokens with copies of their experts' weights: the
    shapes do not depend on the router's choice, so the host does not wait for it, and CUDA graphs can contain it.
    """

    module: nn.Module
    router: FloatLinear
    chosen: int
    is_normalized: bool
    experts: tuple[GatedMlp, ...]

    @property
    def max_copied_tokens(self) -> int:
        """Maximum number of tokens whose experts' weights are copied; 0 if the module cannot do so."""
        experts = self.module._modules["experts"]
        has_variants = experts is not None and hasattr(experts, "_apply_gate") and bool(experts._parameters)
        return _MAX_COPIED_EXPERTS // self.chosen if has_variants else 0

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        if hidden.device.type == "cuda" and hidden.shape[:-1].numel() <= self.max_copied_tokens:
            rows = hidden.reshape(-1, hidden.shape[-1])
            _, weights, chosen = self.module.get_submodule("gate")(rows)
            experts = self.module.get_submodule("experts")
            return batched_mm_experts_forward(experts, rows, chosen, weights).view_as(hidden)
        found: torch.Tensor = self.module(hidden)
        return found


def map_mixture(module: nn.Module) -> MixtureMlp | None:
    """Return the parts of a mixture of experts of the kind of Mixtral and Qwen3-MoE; None for another kind."""
    gate, experts = module._modules.get("gate"), module._modules.get("experts")
    if gate is None or experts is None or len(module._modules) != 2:
        return None
    weight, chosen = gate._parameters.get("weight"), vars(gate).get("top_k")
    act = experts._modules.get("act_fn") or vars(experts).get("act_fn")
    parts = [_expert_maps(experts, name) for name in ("gate_up_proj", "down_proj")]
    if not isinstance(chosen, int) or weight is None or weight.dim() != 2 or len(gate._parameters) != 1:
        return None
    if gate._buffers or act is None or not (len(weight) == len(parts[0]) == len(parts[1]) >= chosen):
        return None
    return MixtureMlp(
        module, FloatLinear(((weight, None),)), chosen, bool(vars(gate).get("norm_topk_prob", True)),
        tuple(GatedMlp(up, down, act) for up, down in zip(*parts, strict=True)),
    )  # fmt: skip


def _expert_maps(experts: nn.Module, name: str) -> list[TensorFunction]:
    """Return the linear maps of every expert; empty if they are of another kind."""
    weights = experts._parameters.get(name)
    if weights is not None:
        is_plain = weights.dim() == 3 and not vars(experts).get("is_transposed", False)
        return [FloatLinear(((matrix, None),)) for matrix in weights.detach()] if is_plain else []
    bank = experts._modules.get(name)
    if isinstance(bank, PackedExperts):
        return [fuse_linears([expert]) for expert in bank.experts]
    if isinstance(bank, GgufExperts):
        return [BlockLinears(matrices, (None,) * len(matrices)) for matrices in zip(*bank.parts, strict=True)]
    return []
