"""Every architecture runs in every block format, with and without native code, as its converted weights do."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.models.gguf.block_formats import DEQUANTIZABLE, dequantize
from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.models.gguf.export import file_content
from decodescope.core.models.gguf.file_writer import TensorEntry, write_file
from decodescope.core.models.gguf.gguf_file import FORMATS
from decodescope.core.models.model_saving import exported_model
from decodescope.core.native import native_library
from decodescope.core.native.native_library import WEIGHTS
from tests.core import gguf_models
from tests.core.test_gguf_blocks import quantized, random_blocks

BY_NAME = {fmt.name: fmt for fmt in FORMATS.values()}
STORED = sorted(DEQUANTIZABLE - {"F64", "Q8_1", "Q8_K"})
"""Formats in which llama.cpp stores matrices; the others are for intermediate results."""
WIDE: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64,
}  # fmt: skip
"""Sizes that blocks of 256 weights divide."""
_LATENT = {
    "kv_lora_rank": 256, "q_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64,
    "moe_intermediate_size": 256,
}  # fmt: skip
_FALCON = {"ffn_hidden_size": 256, "num_key_value_heads": None}
_EXPERTS = {"moe_intermediate_size": 256}
OWN: dict[str, dict[str, Any]] = {
    "qwen2_moe": {**_EXPERTS, "shared_expert_intermediate_size": 256}, "qwen3_moe": _EXPERTS, "lfm2_moe": _EXPERTS,
    "deepseek_v2": _LATENT, "deepseek_v3": _LATENT, "falcon": _FALCON, "falcon40b": _FALCON,
    "gpt_neox": {"num_key_value_heads": None}, "minicpm": {"attention_multiplier": 0.125},
    "mamba": {"intermediate_size": 512},
}  # fmt: skip
"""Further sizes of architectures, and those without which they cannot be built."""
CASES = list(itertools.product(gguf_models.KINDS, STORED))
TOKENS = 6
FLIPPED = {"olmo2": 0.03, "exaone4": 0.03, "deepseek_v3": 0.02}
"""Greatest error from values that lie between two steps and are rounded the other way after a sum in another order,
where it is more than 0.01: small outputs that are normalized, and the choice of experts, make each flip large.
"""


def size_of(kind: str) -> dict[str, Any]:
    base = {**WIDE, **OWN.get(kind, {})}
    if kind.startswith("deepseek") or kind in {"mamba", "bloom", "gpt2", "falcon", "falcon40b"}:
        base.pop("head_dim")
    return base


def write(kind: str, format_name: str, path: Path) -> Path:
    """Write a random model whose matrices have random blocks of a format, about as large as its own numbers."""
    model = gguf_models.make(kind, **size_of(kind))
    metadata, entries = file_content(exported_model(model), "F16", kind if kind in gguf_models.ALIASES else None)
    with path.open("wb") as stream:
        write_file(stream, metadata, [_in_format(entry, format_name) for entry in entries])
    return path


def _in_format(entry: TensorEntry, format_name: str) -> TensorEntry:
    fmt = BY_NAME[format_name]
    width = entry.shape[-1]
    if entry.format_name != "F16" or width % fmt.block_weights:
        return entry
    rows = torch.Size(entry.shape).numel() // width
    wanted = float(entry.data.view(torch.float16).float().std())
    blocks = random_blocks(fmt, rows, width, len(entry.name), _scale(format_name, wanted))
    if format_name == "MXFP4":  # its scales are powers of two
        blocks.view(-1, fmt.block_bytes)[:, 0] = round(math.log2(wanted)) + 126
    elif format_name == "NVFP4":  # and of these, floats of 8 bits with three bits of mantissa
        blocks.view(-1, fmt.block_bytes)[:, :4] = max(1, round(math.log2(wanted)) + 6) << 3
    return TensorEntry(entry.name, entry.shape, format_name, blocks.reshape(-1))


def _scale(format_name: str, wanted: float) -> float:
    """Return the scale of random blocks whose numbers have the standard deviation `wanted`."""
    fmt = BY_NAME[format_name]
    if format_name in {"MXFP4", "NVFP4"}:
        return 1.0
    return wanted / float(dequantize(random_blocks(fmt, 32, 256, 0, 1.0), fmt).std())


def greedy(model: core.LoadedModel, beams: int = 1) -> Any:
    config = {"max_new_tokens": TOKENS, "do_sample": False, "num_beams": beams}
    return core.run(model, core.Request(gguf_models.PROMPT, config)).sequences


def rounded_product(matrix: BlockMatrix, vectors: torch.Tensor) -> torch.Tensor:
    """Return what a native product is: of the weights and, for blocks that have a kernel, vectors rounded to 8 bits."""
    has_kernel = matrix.fmt.block_weights > 1 and matrix.fmt.name in WEIGHTS
    rows = quantized(vectors) if has_kernel else vectors
    return (rows.double() @ dequantize(matrix.blocks, matrix.fmt).double().t()).float()


def check(kind: str, format_name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare texts and logits of the blocks with those of the converted weights: without native code as they are, with
    it as products with rounded vectors give them.
    """
    write(kind, format_name, path)
    floats = core.load(path, weights="float32", device="cpu")
    assert floats.weights == "float32"
    texts = greedy(floats)[0], greedy(floats, 3)
    for is_native in (False, True):
        with monkeypatch.context() as patch:
            if is_native:
                assert native_library.library() is not None
            else:
                patch.setattr(native_library, "library", lambda: None)
            blocks = core.load(path, device="cpu")
            text, beams = greedy(blocks)[0], greedy(blocks, 3)
            ids = [*gguf_models.PROMPT, *text]
            found = gguf_models.logits(blocks, ids)
        expected = gguf_models.logits(floats, ids)
        is_exact = not is_native or BY_NAME[format_name].block_weights == 1
        if is_exact:
            assert (text, beams) == texts
        else:
            with monkeypatch.context() as patch:
                patch.setattr(native_library, "library", lambda: None)
                patch.setattr(BlockMatrix, "multiply", rounded_product)
                expected = gguf_models.logits(core.load(path, device="cpu"), ids)
        errors = (found - expected).norm(dim=-1) / expected.norm(dim=-1)
        error = float(errors.median())  # a tie that is rounded the other way sends a token to other experts
        assert error < (1e-4 if is_exact else FLIPPED.get(kind, 0.01)), f"native={is_native}: {error}"
        for step, token in enumerate(text):  # each is the likeliest, or as likely as sums in another order can tell
            scores = expected[len(gguf_models.PROMPT) - 1 + step]
            assert float(scores.max() - scores[token]) <= (1e-3 if is_exact else 0.05) * float(expected.std())


@pytest.mark.usefixtures("built")
@pytest.mark.every(150)
@pytest.mark.parametrize(("kind", "format_name"), CASES)
def test_every_architecture_runs_in_every_format(
    kind: str, format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    check(kind, format_name, tmp_path / "tiny.gguf", monkeypatch)
