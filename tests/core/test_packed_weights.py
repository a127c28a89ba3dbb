"""int8 and int4 weights: results, size, and lossless strategies."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from torch.nn import functional as F
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.forward.fused_decoder import matches_module
from decodescope.core.errors import CacheError, ParameterError, UnpackableError
from decodescope.core.models import devices
from decodescope.core.models.quantized import packed_matrices
from decodescope.core.models.quantized.packed_layers import PackedEmbedding, PackedLinear, PackedModule
from decodescope.core.models.quantized.tensor_files import allocate_pages
from tests.core import tiny
from tests.core.quantized_rows import quantize_groups, quantize_rows

_SMALL = {**tiny._SMALL, "num_hidden_layers": 2}
_MORE: dict[str, Callable[[], Any]] = {
    "mixtral": lambda: t.MixtralForCausalLM(
        t.MixtralConfig(**{**_SMALL, "num_local_experts": 4, "num_experts_per_tok": 2})
    ),
    "opt": lambda: t.OPTForCausalLM(
        t.OPTConfig(
            vocab_size=61,
            hidden_size=32,
            ffn_dim=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=64,
        )
    ),
    "tied": lambda: t.LlamaForCausalLM(t.LlamaConfig(**{**_SMALL, "tie_word_embeddings": True})),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny model of a family, written to the disk once."""

    @cache
    def folder(kind: str) -> Path:
        path = tmp_path_factory.mktemp(kind)
        torch.manual_seed(0)
        network = _MORE[kind]() if kind in _MORE else tiny.make(kind, scale=2.0).model
        network.save_pretrained(path)
        return path

    return folder


@torch.no_grad()
def round_as(network: Any, packed: Any) -> None:
    """Set the weights of a float module to the unpacked weights of a packed one."""
    for name, module in packed.named_modules():
        if isinstance(module, PackedLinear) and ".experts." not in name:
            own = network.get_submodule(name).weight
            own = own.t() if module.transposed else own
            own.copy_(_rounded(own, module.bits))
        elif isinstance(module, PackedEmbedding):
            network.get_submodule(name).weight.copy_(_rounded(network.get_submodule(name).weight, 8))
    for name, tensor in network.named_parameters():
        if tensor.dim() == 3 and name.endswith("_proj"):
            tensor.copy_(torch.stack([_rounded(expert, 8) for expert in tensor]))


def _rounded(rows: torch.Tensor, bits: int) -> torch.Tensor:
    if bits == 8:
        numbers, scales = quantize_rows(rows)
        return numbers * scales[:, None]
    numbers, beside = quantize_groups(rows)
    scale, offset = (part.t().float().unsqueeze(-1) for part in beside.unbind(-1))
    return ((numbers.unflatten(-1, (-1, packed_matrices.GROUP)) - 8) * scale + offset).flatten(-2)


def logits(model: core.LoadedModel) -> torch.Tensor:
    """Use 20 tokens at once."""
    ids = torch.tensor([tiny.prompt(20)])
    source = {"decoder_input_ids": ids} if model.is_encoder_decoder else {}
    with torch.inference_mode():
        out: torch.Tensor = model.model(ids, **source).logits
    return out


@pytest.mark.parametrize("kind", ["tied", "gpt2", "gemma3", "opt", "mixtral", "bart"])
def test_packed_modules_compute_with_the_rounded_weights(kind: str, folders: Callable[[str], Path]) -> None:
    """Near to nothing beside the rounding is lost; the tables of weights and bytes agree with the outline's."""
    plain, packed = core.load(folders(kind)), core.load(folders(kind), weights="int8")
    outline = core.blueprint(folders(kind), weights="int8")
    assert (packed.weights, plain.weights) == ("int8", "float32")
    assert packed.parameters == plain.parameters == outline.parameters
    assert packed.weight_bytes == outline.weight_bytes < plain.weight_bytes / 1.9
    round_as(plain.model, packed.model)
    torch.testing.assert_close(logits(packed), logits(plain), rtol=2e-3, atol=2e-3)


def test_int4_model_equals_the_rounded_weights(folders: Callable[[str], Path]) -> None:
    plain, packed = core.load(folders("llama")), core.load(folders("llama"), weights="int4")
    assert packed.weights == "int4"
    assert packed.weight_bytes == core.blueprint(folders("llama"), weights="int4").weight_bytes < plain.weight_bytes / 4
    round_as(plain.model, packed.model)
    error = (logits(packed) - logits(plain)).norm() / logits(plain).norm()
    assert error < 0.03  # vectors go in and out in bfloat16


KERNELS = [
    *([packed_matrices.BlockedInt8Matmul] if packed_matrices.has_fast_onednn() else []),
    packed_matrices.FloatInt8Matmul,
]
"""Those that this processor can run."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_packed_product_of_a_row_is_independent_of_other_rows(kernel: Any) -> None:
    """Sums of whole numbers are exact: a draft checked at once is checked as single steps would."""
    generator = torch.Generator().manual_seed(0)
    rows, vectors = torch.randn(61, 100, generator=generator), torch.randn(7, 100, generator=generator)
    vectors[:, 5] *= 300  # one large feature, as language models have them
    numbers, scales = quantize_rows(rows)
    matrix = kernel(numbers, scales)
    together = matrix.multiply_split(*packed_matrices.split_vectors(vectors))
    assert torch.equal(
        together, torch.cat([matrix.multiply_split(*packed_matrices.split_vectors(row[None])) for row in vectors])
    )
    wanted = F.linear(vectors.double(), numbers.double() * scales[:, None].double())
    assert (together - wanted).norm() / wanted.norm() < 5e-4
    assert (rows - numbers * scales[:, None]).abs().amax(-1).le(scales / 2 + 1e-6).all()


def test_the_reference_of_onednn_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a thousand times as long as a kernel does."""
    monkeypatch.setattr(packed_matrices, "_seconds", lambda matrix: 0.02)
    assert not packed_matrices.has_fast_onednn.__wrapped__()
    monkeypatch.setattr(packed_matrices, "_seconds", lambda matrix: 2e-5)
    assert packed_matrices.has_fast_onednn.__wrapped__() or not packed_matrices.has_fast_onednn()


def test_largest_integer_sums_are_exact() -> None:
    """By whatever kernel this machine has, also where pairs of products or long sums would overflow its numbers."""
    numbers = torch.full((5, 4099), 127, dtype=torch.int8)
    halves = torch.tensor([127, -127], dtype=torch.int8)[:, None].expand(2, 4099).contiguous()
    found = packed_matrices.pack_int8(numbers, torch.ones(5)).multiply_split(halves, torch.ones(1, 1))
    torch.testing.assert_close(found, torch.full((1, 5), 4099 * 127**2 * (1 - 1 / 254)), rtol=1e-6, atol=0)


@pytest.fixture(scope="module")
def packed() -> core.LoadedModel:
    return core.load("storyteller", weights="int8")


_TALE = "Once upon a time, in a deep forest, there lived"


def test_strategies_equal_generate(packed: core.LoadedModel) -> None:
    """Greedy and beams, token for token, against transformers on the same packed module."""
    ids = packed.tokenizer.encode(_TALE)
    for config in (GenerationConfig(max_new_tokens=12), GenerationConfig(max_new_tokens=6, num_beams=2)):
        assert core.run(packed, core.Request(ids, config)).sequences == tiny.reference(packed, ids, config)


@pytest.mark.parametrize("strategy", ["assisted", "token_tree"])
def test_drafts_with_packed_weights_do_not_change_the_text(strategy: str, packed: core.LoadedModel) -> None:
    config = GenerationConfig(max_new_tokens=20)
    plain = core.run(packed, core.Request(_TALE, config)).sequences
    drafters = (core.load("storyteller-draft"),) if strategy in ("assisted", "token_tree") else ()
    assert core.run(packed, core.Request(_TALE, config, strategy=strategy, drafters=drafters)).sequences == plain


@pytest.mark.parametrize("strategy", ["contrastive", "dola", "early_exit"])
def test_other_strategies_run_with_packed_weights(strategy: str, packed: core.LoadedModel) -> None:
    request = core.Request(_TALE, GenerationConfig(max_new_tokens=4), strategy=strategy, seed=1)
    assert core.run(packed, request).texts[0].strip()


def test_run_reports_the_packed_format(packed: core.LoadedModel) -> None:
    result = core.run(packed, core.Request(_TALE, GenerationConfig(max_new_tokens=1)))
    started = next(event for event in result.events if isinstance(event, core.events.RunStarted))
    assert started.dtype == "int8"
    assert packed.identity.kept_in == "int8"
    assert core.load("storyteller").identity.kept_in == ""


def test_invalid_packed_format_or_model_raises_an_error(folders: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="int3"):
        core.load("storyteller", weights="int3")
    with pytest.raises(UnpackableError, match=r"Mamba.*int8"):
        core.load(folders("mamba"), weights="int8")
    for file in folders("llama").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    method = {"quant_method": "fp8", "weight_block_size": [8, 8]}
    (tmp_path / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    with pytest.raises(UnpackableError, match="already quantized"):
        core.load(tmp_path, weights="int8")


def test_weights_are_converted_to_the_requested_dtype_on_loading(tmp_path: Path) -> None:
    """Weights, merged experts and decoding settings equal those of transformers' own loader."""
    network = _MORE["mixtral"]().bfloat16()
    network.generation_config.max_new_tokens = 7
    network.save_pretrained(tmp_path)
    ours, reference = core.load(tmp_path, weights="float32"), t.MixtralForCausalLM.from_pretrained(tmp_path).float()
    assert ours.generation_config.max_new_tokens == 7
    state = ours.model.state_dict()
    assert {name: float(value.sum()) for name, value in state.items()} == {
        name: float(value.sum()) for name, value in reference.state_dict().items()
    }


def test_large_buffers_are_allocated_on_separate_pages() -> None:
    """They can be filled like others, and live as long as any tensor that shows them."""
    for shape in ((3, 5), (300, 500)):
        one, other = allocate_pages(shape, torch.float32).fill_(1), allocate_pages(shape, torch.float32).fill_(2)
        rows = one[1:]
        del one
        assert torch.equal(rows, torch.ones(shape[0] - 1, shape[1]))
        assert torch.equal(other, torch.full(shape, 2.0))


def test_rounding_differences_of_packed_weights_are_accepted(packed: core.LoadedModel) -> None:
    """Large int8 models would otherwise never use a fused pass; float models have a stricter limit."""

    def passes(by: float, model: core.LoadedModel) -> bool:
        def other(ids: torch.Tensor, cache: t.Cache, keep: int = 1) -> torch.Tensor:
            logits: torch.Tensor = model.model(ids, **{model.cache_name: cache}).logits
            return logits + by * logits.abs().max()

        with torch.inference_mode():
            return matches_module(other, model)

    assert passes(5e-4, packed)
    assert not passes(5e-3, packed)
    assert not passes(5e-4, core.load("storyteller"))


def packed_modules(model: core.LoadedModel) -> Iterator[PackedModule]:
    """All of them."""
    return (module for module in model.model.modules() if isinstance(module, PackedModule))


def test_prefix_fingerprints_distinguish_packed_weights(packed: core.LoadedModel) -> None:
    from decodescope.core.caches.prefixes.prefix_files import model_fingerprint

    again, floats = core.load("storyteller", weights="int8"), core.load("storyteller")
    assert model_fingerprint(packed) == model_fingerprint(again) != model_fingerprint(floats)
    other = next(packed_modules(again))
    other.pack(torch.randn(other.weight.shape, generator=torch.Generator().manual_seed(0)))
    again.strategy_data.clear()
    assert model_fingerprint(again) != model_fingerprint(packed)


def test_bfloat16_is_kept_where_faster_and_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    measured: list[torch.dtype] = []

    def seconds(dtype: torch.dtype, rows: int) -> float:
        assert rows == 1
        measured.append(dtype)
        return {torch.bfloat16: 1.0, torch.float32: 2.0}[dtype]

    monkeypatch.setattr(devices, "_best_time", seconds)
    config = t.LlamaConfig(**{**_SMALL, "hidden_size": 512, "num_hidden_layers": 1})
    t.LlamaForCausalLM(config).bfloat16().save_pretrained(tmp_path / "model")
    assert core.load(tmp_path / "model").weights == "bfloat16"
    assert core.load(tmp_path / "model").weights == "bfloat16"
    assert len(measured) == 2, "once for each type"
    monkeypatch.setattr(devices, "is_bfloat16_faster", lambda: False)
    assert core.load(tmp_path / "model").weights == "float32"
    assert core.load("storyteller").weights == "float32"


def test_compile_with_packed_weights_is_refused(packed: core.LoadedModel) -> None:
    config = GenerationConfig(max_new_tokens=4)
    with pytest.raises(CacheError, match="int8; turn Compile off"):
        core.run(packed, core.Request(_TALE, config, cache="static", cache_options={"compile": True}))
    fixed = core.run(packed, core.Request(_TALE, config, cache="static")).sequences
    assert fixed == core.run(packed, core.Request(_TALE, config)).sequences


def test_weights_cost_reports_the_error_of_packed_weights(packed: core.LoadedModel) -> None:
    """Report in steps up to the whole text; the claims of the model picker hold."""
    plain, text = core.load("storyteller"), _TALE + " a little fox named Fern. She liked to sing." * 6
    reports = list(core.weights_cost(packed, plain, text))
    assert [report.done for report in reports] == [64, reports[-1].total]
    last = reports[-1]
    assert 0.001 < last.error < 0.015
    assert abs(last.change) < 0.02
    scored = core.score(plain, text)
    mean = sum(token.raw_log_probability for token in scored) / len(scored)
    assert last.plain_perplexity == pytest.approx(math.exp(-mean), rel=0.05)
    four = list(core.weights_cost(core.load("storyteller", weights="int4"), plain, text))[-1]
    assert 0.02 < four.error < 0.2
    stop = threading.Event()
    stop.set()
    assert not list(core.weights_cost(packed, plain, text, stop))
    assert not list(core.weights_cost(plain, plain, text))[-1].error
