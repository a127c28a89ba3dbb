"""Block formats of GGUF files: conversion as in the package `gguf`, and native products within their stated error."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from decodescope import core
from decodescope.core.models.gguf.block_formats import DEQUANTIZABLE, NATIVE, QUANTIZERS, dequantize
from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.models.gguf.gguf_file import FORMATS, BlockFormat
from decodescope.core.native import library_choice, native_library
from tests.core.native_step_models import step_of

needs_compiler = pytest.mark.usefixtures("needs_compiler")
BY_NAME = {fmt.name: fmt for fmt in FORMATS.values()}
PACKED = sorted(name for name in NATIVE if BY_NAME[name].block_weights > 1)
HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q8_1": (0,), "Q2_K": (80, 82),
    "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,), "TQ1_0": (52,),
    "TQ2_0": (64,),
}  # fmt: skip
"""Where the half-precision numbers of a block are: random bytes would be infinities and no numbers among others."""


def random_blocks(fmt: BlockFormat, rows: int, inputs: int, seed: int = 0, scale: float = 0.01) -> torch.Tensor:
    """Return blocks of random codes and scales, whose standard deviation is `scale`, uint8 [rows, row bytes]."""
    generator = np.random.default_rng(seed)
    if fmt.name in ("F32", "F16", "BF16", "F64"):
        numbers = torch.from_numpy(generator.standard_normal((rows, inputs)))
        dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}[fmt.name]
        return numbers.to(dtype).view(torch.uint8)
    count = inputs // fmt.block_weights
    blocks = generator.integers(0, 256, (rows, count, fmt.block_bytes), dtype=np.uint8)
    for place in HALVES.get(fmt.name, ()):
        scales = generator.standard_normal((rows, count, 1)) * scale
        blocks[:, :, place : place + 2] = scales.astype("<f2").view(np.uint8)
    if fmt.name == "Q8_K":
        blocks[:, :, :4] = generator.standard_normal((rows, count, 1)).astype("<f4").view(np.uint8)
    return torch.from_numpy(blocks.reshape(rows, -1))


def matrix_of(name: str, rows: int, inputs: int, seed: int = 0, scale: float = 0.01) -> BlockMatrix:
    fmt = BY_NAME[name]
    return BlockMatrix(random_blocks(fmt, rows, inputs, seed, scale), fmt, inputs)


def exact_weights(matrix: BlockMatrix) -> torch.Tensor:
    return dequantize(matrix.blocks, matrix.fmt).double()


def error_bound(matrix: BlockMatrix, vectors: torch.Tensor) -> torch.Tensor:
    """Return the greatest error of each product that block_matrix.py states, float64 [M, N]."""
    weights = exact_weights(matrix).abs()
    bound = vectors.double().abs() @ weights.t() * 2**-22
    if matrix.fmt.block_weights > 1:
        half_steps = vectors.double().view(len(vectors), -1, 32).abs().amax(-1) / 254
        bound += torch.einsum("mb,nb->mn", half_steps, weights.view(matrix.outputs, -1, 32).sum(-1))
    return bound


def quantized(vectors: torch.Tensor) -> torch.Tensor:
    """Return the numbers that the native kernels multiply."""
    blocks = vectors.unflatten(-1, (-1, 32))
    steps = blocks.abs().amax(-1, keepdim=True).clamp_(min=1e-30) / 127
    return ((blocks / steps).round() * steps).flatten(-2)


def test_block_sizes_equal_those_of_the_gguf_package() -> None:
    gguf = pytest.importorskip("gguf")
    sizes = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    sizes[9] = (32, 36)  # the package still has the size of an early version, which no file contains
    assert {fmt.type_id: (fmt.block_weights, fmt.block_bytes) for fmt in FORMATS.values()} == sizes
    assert all(gguf.GGMLQuantizationType(fmt.type_id).name == fmt.name for fmt in FORMATS.values())
    assert NATIVE <= DEQUANTIZABLE <= {fmt.name for fmt in FORMATS.values()}


@pytest.mark.parametrize("name", sorted(DEQUANTIZABLE - {"F64", "Q8_1", "Q8_K"}))
def test_conversion_equals_that_of_the_gguf_package(name: str) -> None:
    """To the last bit; three blocks in each of five rows."""
    gguf, fmt = pytest.importorskip("gguf"), BY_NAME[name]
    blocks = random_blocks(fmt, 5, 3 * fmt.block_weights)
    expected = gguf.quants.dequantize(blocks.numpy(), gguf.GGMLQuantizationType(fmt.type_id))
    found = dequantize(blocks, fmt)
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), expected)


def test_conversion_of_8_bit_blocks_with_sums() -> None:
    """The package cannot convert these."""
    for name, codes, scale_type in (("Q8_1", slice(4, 36), "<f2"), ("Q8_K", slice(4, 260), "<f4")):
        fmt = BY_NAME[name]
        blocks = random_blocks(fmt, 4, fmt.block_weights)
        scale = blocks.numpy()[:, : np.dtype(scale_type).itemsize].copy().view(scale_type).astype(np.float32)
        np.testing.assert_array_equal(dequantize(blocks, fmt).numpy(), blocks.numpy()[:, codes].view(np.int8) * scale)


def test_conversion_of_rows_at_odd_addresses() -> None:
    for name in DEQUANTIZABLE:
        fmt = BY_NAME[name]
        blocks = random_blocks(fmt, 3, 2 * fmt.block_weights)
        moved = torch.cat([torch.zeros(1, dtype=torch.uint8), blocks.flatten()])[1:].view(blocks.shape)
        assert moved.data_ptr() % 2 == 1
        assert torch.equal(dequantize(moved, fmt), dequantize(blocks, fmt))


@pytest.mark.parametrize("name", ["Q4_K", "Q8_0", "F16", "TQ1_0"])
def test_products_without_a_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In portions of a few rows: those of the converted weights."""
    monkeypatch.setattr("decodescope.core.models.gguf.block_matrix._PORTION", 1024)
    monkeypatch.setattr(native_library, "library", lambda: None)
    matrix, vectors = matrix_of(name, 19, 256), torch.randn(3, 256)
    expected = vectors.double() @ exact_weights(matrix).t()
    torch.testing.assert_close(matrix.multiply(vectors).double(), expected, rtol=1e-4, atol=1e-4)
    ids = torch.tensor([[18, 0], [7, 7]])
    assert torch.equal(matrix.rows(ids), dequantize(matrix.blocks, matrix.fmt)[ids])


def test_shapes_that_do_not_match_raise_an_error() -> None:
    blocks = random_blocks(BY_NAME["Q4_0"], 2, 64)
    for unfit, inputs in ((blocks, 96), (blocks, 65), (blocks[:, :-1], 64), (blocks.view(torch.int8), 64)):
        with pytest.raises(ValueError, match="do not hold rows"):
            BlockMatrix(unfit, BY_NAME["Q4_0"], inputs)


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_native_products_are_within_the_stated_error(name: str) -> None:
    """Within the stated error for any number of vectors and blocks, and to the last bit as one by one."""
    fmt = BY_NAME[name]
    for rows, blocks in ((1, 1), (7, 3), (37, 13), (70, 18), (9, 8), (33, 21)):
        inputs = max(32, fmt.block_weights) * (blocks if fmt.block_weights < 256 else 1 + blocks // 8)
        if fmt.block_weights == 1:
            inputs += blocks % 8  # a rest that does not fill a register
        matrix = matrix_of(name, rows, inputs, seed=blocks)
        torch.manual_seed(rows)
        vectors = torch.randn(43, inputs) * torch.rand(43, 1) * 3
        vectors[5] = 0
        alone = torch.cat([matrix.multiply(vector[None]) for vector in vectors])
        assert alone.shape == (43, rows)
        error = (alone.double() - vectors.double() @ exact_weights(matrix).t()).abs()
        assert bool((error <= error_bound(matrix, vectors)).all())
        several = torch.cat([matrix.multiply(some) for some in vectors.split([2, 3, 5, 6, 7, 15, 5])])
        assert torch.equal(several, alone)
        if fmt.block_weights > 1:
            assert torch.equal(matrix.multiply(vectors), alone)
        else:
            torch.testing.assert_close(matrix.multiply(vectors), alone, rtol=1e-4, atol=1e-4)


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", PACKED)
def test_native_products_of_exact_vectors(name: str) -> None:
    """Whole numbers of at most 127 in every block lose nothing: products are exact but for rounding."""
    matrix = matrix_of(name, 40, 768)
    vectors = torch.randint(-127, 128, (9, 24, 32), generator=torch.Generator().manual_seed(0)).float()
    vectors[:, :, 0] = 127
    vectors = vectors.view(9, 768)
    expected = vectors.double() @ exact_weights(matrix).t()
    allowed = vectors.double().abs() @ exact_weights(matrix).abs().t() * 2**-22
    for some in (vectors, vectors[:1]):
        assert bool(((matrix.multiply(some).double() - expected[: len(some)]).abs() <= allowed[: len(some)]).all())


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("threads", [1, 2])
def test_native_products_of_a_mapped_file(threads: int, tmp_path: Path) -> None:
    """A matrix that ends with the last byte of a read-only file is read at any address, and no further."""
    torch.set_num_threads(threads)  # put back for every test
    for name in sorted(NATIVE):
        fmt = BY_NAME[name]
        inputs = 768 if fmt.block_weights == 256 else 416
        blocks = random_blocks(fmt, 333, inputs)
        path = tmp_path / name
        path.write_bytes(bytes(-(blocks.numel() + 2) % mmap.PAGESIZE + 2) + blocks.numpy().tobytes())
        mapped = np.memmap(path, np.uint8, "r")[-blocks.numel() :].reshape(blocks.shape)
        matrix, copied = (BlockMatrix(some, fmt, inputs) for some in (torch.from_numpy(mapped), blocks))
        for count in (1, 8):
            vectors = torch.randn(count, inputs)
            assert torch.equal(matrix.multiply(vectors), copied.multiply(vectors))
        ids = torch.tensor([332, 0, 5])
        assert torch.equal(matrix.rows(ids), dequantize(blocks, fmt)[ids])


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_native_rows_equal_the_torch_conversion(name: str) -> None:
    """The very numbers of the conversion by torch."""
    matrix = matrix_of(name, 11, 512)
    ids = torch.tensor([[10, 3, 0], [3, 9, 9]])
    assert torch.equal(matrix.rows(ids), dequantize(matrix.blocks, matrix.fmt)[ids])
    assert matrix.rows(ids[:, :0]).shape == (2, 0, 512)
    for wrong in (11, -1):
        with pytest.raises(IndexError):
            matrix.rows(torch.tensor([0, wrong]))


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("name", PACKED)
def test_native_products_with_infinite_or_nan_values(name: str) -> None:
    """One makes the products of its own vector no numbers, and no others; scales of any bytes do no harm."""
    matrix, vectors = matrix_of(name, 17, 256), torch.randn(7, 256)
    expected = matrix.multiply(vectors)
    for value in (torch.inf, -torch.inf, torch.nan):
        vectors[3, 77] = value
        for found in (matrix.multiply(vectors), torch.cat([matrix.multiply(vector[None]) for vector in vectors])):
            assert bool(found[3].isnan().all())
            assert torch.equal(found[[0, 1, 2, 4, 5, 6]], expected[[0, 1, 2, 4, 5, 6]])
    generator = np.random.default_rng(0)
    anything = torch.from_numpy(generator.integers(0, 256, matrix.blocks.shape, dtype=np.uint8))
    hostile = BlockMatrix(anything, matrix.fmt, 256)
    assert hostile.multiply(torch.randn(9, 256)).shape == (9, 17)
    assert torch.equal(hostile.rows(torch.arange(17)).isnan(), dequantize(anything, matrix.fmt).isnan())


VARIANT = """
#include "matmul_blocks.h"
extern "C" void multiply_variant(const Matrix* matrix, const float* vectors, int64_t rows, float* found) {
    BlockVectors of;
    of.quantize(vectors, rows, matrix->inputs, 1);
    multiply_blocks(*matrix, of, found, matrix->outputs, 0, matrix->outputs);
}
"""


@needs_compiler
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-DDECODESCOPE_TEST_UNSIGNED_PRODUCTS", "-march=native"), id="unsigned_products"),
        pytest.param((), id="any_processor"),
    ],
)
def test_variants_for_other_processors(flags: tuple[str, ...], tmp_path: Path) -> None:
    """The code for processors with VNNI, whose instruction is imitated, and that for processors without AVX2."""
    source, target = tmp_path / "variant.cpp", tmp_path / "variant.so"
    source.write_text(VARIANT, encoding="utf-8")
    compiler = library_choice.find_compiler()
    assert compiler is not None
    command = [compiler, "-std=c++17", "-O1", "-ffp-contract=fast", "-shared", "-fPIC", f"-I{library_choice.SOURCE}"]
    subprocess.run([*command, *flags, str(source), "-o", str(target)], check=True, timeout=300)
    multiply: Any = ctypes.CDLL(str(target)).multiply_variant
    multiply.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    multiply.restype = None
    for name in PACKED:
        for rows, inputs in ((19, 512), (8, 768 if BY_NAME[name].block_weights == 256 else 576)):
            matrix, vectors = matrix_of(name, rows, inputs), torch.randn(11, inputs)
            found, alone = torch.empty(11, rows), torch.empty(11, rows)
            struct = matrix.to_struct(None)
            multiply(ctypes.byref(struct), vectors.data_ptr(), 11, found.data_ptr())
            for vector, own in zip(vectors, alone, strict=True):
                multiply(ctypes.byref(struct), vector.data_ptr(), 1, own.data_ptr())
            assert torch.equal(found, alone)
            error = (found.double() - vectors.double() @ exact_weights(matrix).t()).abs()
            assert bool((error <= error_bound(matrix, vectors)).all())


@needs_compiler
@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_decode_step_with_blocks() -> None:
    """Matrices of several formats in the native step: logits of the converted weights, tokens as one by one.

    A module whose linear layers quantize their inputs alike has nearly the same logits: no other error is added.
    """
    torch.manual_seed(0)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=61, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=64, max_position_embeddings=256,
        )
    )  # fmt: skip
    kept: list[BlockMatrix] = []

    def pack(linear: torch.nn.Linear, name: str) -> Any:
        matrix = matrix_of(name, linear.out_features, linear.in_features, len(kept))
        scale = 0.01 * linear.in_features**-0.5 / float(exact_weights(matrix).std())
        matrix = matrix_of(name, linear.out_features, linear.in_features, len(kept), scale)
        linear.weight.copy_(exact_weights(matrix))
        kept.append(matrix)
        return matrix.to_struct(None)

    model = core.wrap(network)
    step = step_of(model)
    names = iter([*PACKED, *PACKED, *PACKED])
    for layer, own in zip(network.model.layers, step._weights._layers, strict=True):
        attention, mlp = layer.self_attn, layer.mlp
        for i, linear in enumerate((attention.q_proj, attention.k_proj, attention.v_proj)):
            own.project[i] = pack(linear, next(names))
        own.out, own.down = pack(attention.o_proj, next(names)), pack(mlp.down_proj, next(names))
        own.up[0], own.up[1] = pack(mlp.gate_proj, next(names)), pack(mlp.up_proj, next(names))
    step._weights.model.head = pack(network.lm_head, next(names))
    ids = torch.randint(0, 61, (1, 24), generator=torch.Generator().manual_seed(0))
    expected, found = network(ids).logits[:, 9:], []
    for count in (1, 2, 7, 15):
        cache = DynamicCache()
        network(ids[:, :9], **{model.cache_name: cache})
        found.append(torch.cat([step(some, cache, 0) for some in ids[:, 9:].split(count, 1)], 1))
    assert all(torch.equal(several, found[0]) for several in found)
    assert float((found[0] - expected).norm() / expected.norm()) < 0.05
    cache = DynamicCache()
    network(ids[:, :9], **{model.cache_name: cache})
    for module in network.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, vectors: (quantized(vectors[0]),))
    expected = network(ids[:, 9:], **{model.cache_name: cache}).logits
    assert float((found[0] - expected).norm() / expected.norm()) < 0.005


@pytest.mark.parametrize("name", ["Q8_0", "Q4_0", "Q4_1"])
def test_quantized_blocks_equal_those_of_the_gguf_package(name: str) -> None:
    """Files of this program equal those of the package `gguf`, byte for byte, except for ties of rounding."""
    gguf = pytest.importorskip("gguf")
    values = torch.randn(300, 32, generator=torch.Generator().manual_seed(4))
    values[7] = 0.0
    expected = gguf.quants.quantize(values.numpy(), gguf.GGMLQuantizationType[name])
    assert (QUANTIZERS[name](values).numpy() != expected).mean() < 0.002


@pytest.mark.parametrize(("name", "steps"), [("Q8_0", 127), ("Q4_0", 7), ("Q4_1", 7.5)])
def test_quantization_error_is_at_most_half_a_step(name: str, steps: float) -> None:
    values = torch.randn(300, 32, generator=torch.Generator().manual_seed(5))
    error = (dequantize(QUANTIZERS[name](values), BY_NAME[name]) - values).abs().amax(-1)
    largest = values.abs().amax(-1)
    assert bool((error <= (1.05 if name == "Q4_0" else 0.55) * largest / steps + 1e-3).all())
