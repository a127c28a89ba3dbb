"""The native decode step equals the module, falls back where it is not supported, and is compiled safely."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.cache_operations import measure_storages
from decodescope.core.decoding.forward import native_step as native_step_module
from decodescope.core.decoding.forward.fused_decoder import select_fused_pass
from decodescope.core.decoding.forward.native_step import NativeDecodeStep, get_native_step
from decodescope.core.models.quantized.packed_layers import PackedLinear, weight_bytes
from decodescope.core.models.quantized.packed_matrices import (
    GROUP,
    FloatInt8Matmul,
    Int8RowMatrix,
    has_fast_onednn,
    pack_int4,
    split_vectors,
    to_int4_rows,
)
from decodescope.core.native import kernel_build, library_choice, native_library
from tests import native_level
from tests.core import tiny
from tests.core.native_step_models import model_of, step_of
from tests.core.quantized_rows import quantize_groups

pytestmark = pytest.mark.usefixtures("needs_compiler")
FAMILIES = ("llama", "qwen3", "qwen2", "mistral", "gpt2", "gemma3", "opt", "gpt_neox", "phi3")
GREEDY = GenerationConfig(max_new_tokens=24, do_sample=False)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model on the disk."""
    path = tmp_path_factory.mktemp("tiny")
    tiny.shared("llama").model.save_pretrained(path)
    return path


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every pass that it takes from now on."""
    calls: list[int] = []
    original = NativeDecodeStep.__call__

    def counted(self: NativeDecodeStep, ids: torch.Tensor, cache: Any, *more: Any) -> torch.Tensor:
        calls.append(ids.numel())
        return original(self, ids, cache, *more)

    monkeypatch.setattr(NativeDecodeStep, "__call__", counted)
    return calls


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", FAMILIES)
@torch.inference_mode()
def test_native_step_equals_the_module(kind: str) -> None:
    """In uneven portions of two rows, past every window; the same tokens as `generate`."""
    model = model_of(kind)
    lean, step = select_fused_pass(model, DynamicCache()), step_of(model)
    assert lean is not None
    ids, result, reference = torch.tensor([tiny.prompt(30), tiny.prompt(30, 1)]), DynamicCache(), DynamicCache()
    for portion in ids.split([12, 1, 5, 1, 7, 4], 1):
        wanted = model.model(portion, **{model.cache_name: reference}).logits
        is_served = step.supports(portion, result)
        assert is_served == (portion.shape[1] < 12)
        torch.testing.assert_close((step if is_served else lean)(portion, result, 0), wanted, rtol=1e-4, atol=2e-4)
    assert measure_storages(result) == measure_storages(reference)
    prompt = tiny.prompt()
    assert core.run(model, core.Request(prompt, GREEDY)).sequences == tiny.reference(model, prompt, GREEDY)


_RUNS: dict[str, dict[str, Any]] = {
    "sampling": {"do_sample": True, "temperature": 0.8, "top_k": 12, "top_p": 0.9, "num_return_sequences": 3},
    "beams": {"num_beams": 4, "num_return_sequences": 4},
    "bans": {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2},
}


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", _RUNS)
def test_run_with_the_native_step_equals_the_run_without(
    name: str, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts and figures of every step: ranks and ids equal, probabilities to what floats hold."""
    model = tiny.shared("llama")
    request = core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=12, **_RUNS[name]), cache=cache, seed=3)
    step_of(model)  # it is tried before its first use
    calls = calls_of(monkeypatch)
    result = core.run(model, request)
    assert len(calls) == 11
    native_library.enable_native_steps(False)
    reference = core.run(model, request)
    assert result.sequences == reference.sequences
    for one, other in zip(chosen_tokens(result), chosen_tokens(reference), strict=True):
        assert [(a.id, a.rank) for a in one.alternatives] == [(a.id, a.rank) for a in other.alternatives]
        assert [(s.name, s.survivors) for s in one.funnel] == [(s.name, s.survivors) for s in other.funnel]
        figures = [(e.probability, e.raw_log_probability, e.entropy, e.varentropy) for e in (one, other)]
        assert figures[0] == pytest.approx(figures[1], abs=2e-4)


def chosen_tokens(result: core.Result) -> list[core.events.TokenChosen]:
    return [event for event in result.events if isinstance(event, core.events.TokenChosen)]


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_tree_and_chain_after_the_text_equal_single_passes() -> None:
    """Two children of one parent in one pass equal two passes of their own; a masked chain equals a plain one."""
    model, text, low = tiny.shared("llama"), tiny.prompt(12), torch.finfo(torch.float32).min
    lean, step, cache, plain = select_fused_pass(model, DynamicCache()), step_of(model), DynamicCache(), DynamicCache()
    assert lean is not None
    mask = torch.tensor([[0.0] * 12 + [0, low], [0.0] * 12 + [low, 0]])[None, None]
    for one in (cache, plain):
        lean(torch.tensor([text]), one)
    result = step(torch.tensor([[8, 9]]), cache, 0, mask, torch.tensor([[12, 12]]))
    reference = [model.model(torch.tensor([[*text, child]])).logits[0, -1] for child in (8, 9)]
    torch.testing.assert_close(result[0], torch.stack(reference), rtol=1e-4, atol=1e-4)
    cache.crop(-2)
    chain, below = torch.tensor([[8, 9, 4]]), torch.full((3, 15), low).triu(13)
    assert torch.equal(step(chain, cache, 0, below, torch.tensor([[12, 13, 14]])), step(chain, plain, 0))


@pytest.mark.usefixtures("built")
def test_native_step_reads_drafts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = tiny.make("llama"), tiny.prompt(6) * 3  # the model stores the length of drafts
    step_of(model)
    calls = calls_of(monkeypatch)
    request = core.Request(prompt, GREEDY, strategy="prompt_lookup")
    assert core.run(model, request).sequences == tiny.reference(model, prompt, GREEDY)
    assert max(calls) > 1


@pytest.mark.usefixtures("built")
def test_native_step_reads_a_static_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = tiny.make("llama"), tiny.prompt()
    step_of(model)
    calls = calls_of(monkeypatch)
    request = core.Request(prompt, GREEDY, cache="static", cache_options={"compile": True})
    assert core.run(model, request).sequences == tiny.reference(model, prompt, GREEDY)
    assert calls
    assert "compiled" not in model.strategy_data


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("weights", ["float32", "bfloat16", "int8", "int4"])
@torch.inference_mode()
def test_native_step_of_packed_weights_equals_single_tokens(weights: str, kept: Path) -> None:
    """To the last bit: four tokens at once, four rows at once, and one by one."""
    model = core.load(kept, weights=weights)
    step, lean = step_of(model), select_fused_pass(model, DynamicCache())
    assert lean is not None
    ids, more = torch.tensor([tiny.prompt(40)]), torch.tensor([[7, 8, 9, 10]])
    wanted = model.model(torch.cat([ids, more], 1)).logits[:, -4:].float()
    single, at_once, rows = DynamicCache(), DynamicCache(), DynamicCache()
    for cache in (single, at_once, rows):
        lean(ids, cache)
    rows.batch_repeat_interleave(4)
    singly = torch.cat([step(token, single) for token in more.split(1, 1)], 1)
    assert (singly - wanted).abs().max() < (0.04 if weights == "bfloat16" else 1e-4) * wanted.abs().max()
    assert torch.equal(step(more, at_once, 0), singly)
    assert torch.equal(step(more[:, :1].expand(4, 1), rows), singly[:, :1].expand(4, -1, -1))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_exact_in_fewer_bits_are_stored_shorter(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit what all their bits give; the quicker way is taken, and none where a number is not exact."""
    model, ways = tiny.make("llama"), []
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.copy_(weight.to(dtype))
    found = native_library.library()
    assert found is not None
    choose = native_step_module._faster_step
    monkeypatch.setattr(native_step_module, "_faster_step", lambda *both: ways.extend(both[:2]) or choose(*both))
    assert step_of(model) in ways
    plain, shorter = ways
    assert not plain.has_shorter_weights
    assert shorter.has_shorter_weights == (dtype == torch.bfloat16 or found.supports_float16)
    lean = select_fused_pass(model, DynamicCache())
    assert lean is not None
    with torch.inference_mode():
        given = []
        for step in ways:
            cache = DynamicCache()
            lean(torch.tensor([tiny.prompt(20)]), cache)
            given.append(step(torch.tensor([[7, 8, 9]]), cache, 0))
    assert torch.equal(*given)
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.mul_(1 + 1e-6)
    ways.clear()
    assert not step_of(model).has_shorter_weights


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_repacking_moves_numbers_without_changing_them(kept: Path) -> None:
    model = core.load(kept, weights="int8")
    ids, held = torch.tensor([tiny.prompt(50)]), model.weight_bytes
    before = [model.model(portion).logits for portion in (ids, ids[:, :3])]
    step_of(model)
    after = [model.model(portion).logits for portion in (ids, ids[:, :3])]
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    found = native_library.library()
    assert found is not None
    rows = sum(module.out_features for module in model.model.modules() if isinstance(module, PackedLinear))
    assert weight_bytes(model.model) == held + (4 * rows if found.vector_offset and not has_fast_onednn() else 0)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("shape", [(5, 7), (61, 100), (12, 640), (9, 4099), (4, 8208)])
def test_eight_bits_in_rows_are_multiplied_exactly(shape: tuple[int, int]) -> None:
    """As many vectors as a prompt has, or one; sums as large as they can be, which no 32 bits hold."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
    halves = torch.randint(-127, 128, (60, shape[1]), generator=generator, dtype=torch.int8)
    numbers[:2] = 127
    halves[::30], halves[1::30] = 127, -127
    scales, steps = torch.rand(shape[0], generator=generator), torch.rand(30, 1, generator=generator)
    found = native_library.library()
    assert found is not None
    matrix, wanted = (
        Int8RowMatrix(numbers, scales, found),
        FloatInt8Matmul(numbers, scales).multiply_split(halves, steps),
    )
    for first, count in ((0, 30), (0, 1), (3, 2), (5, 11), (2, 13)):
        some = halves.view(2, 30, -1)[:, first : first + count].flatten(0, 1)
        assert torch.equal(matrix.multiply_split(some, steps[first : first + count]), wanted[first : first + count])


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("shape", [(16, 32), (64, 64), (112, 96), (48, 736), (16, 4192)])
def test_four_bits_in_rows_are_the_same_numbers(shape: tuple[int, int]) -> None:
    """Whole pairs of groups, eights of them and one left over; each vector as alone, to the last bit."""
    generator = torch.Generator().manual_seed(0)
    rows, vectors = torch.randn(shape, generator=generator), torch.randn(11, shape[1], generator=generator)
    vectors[:, 5] *= 300  # one large feature, as language models have them
    found = native_library.library()
    assert found is not None
    packed = pack_int4(rows)
    matrix, (numbers, beside) = to_int4_rows(packed, found), quantize_groups(rows)
    scale, offset = (part.t().double().unsqueeze(-1) for part in beside.unbind(-1))
    exact = ((numbers.unflatten(-1, (-1, GROUP)) - 8) * scale + offset).flatten(-2)
    halves, steps = split_vectors(vectors)
    coarse, fine = halves.double().chunk(2)
    together, wanted = matrix.multiply(vectors), (coarse + fine / 254) * steps @ exact.t()
    assert (together - wanted).norm() / wanted.norm() < 1e-6
    assert torch.equal(together, torch.cat([matrix.multiply(vector[None]) for vector in vectors]))
    assert matrix.nbytes == packed.nbytes
    assert to_int4_rows(matrix, found) is matrix


@pytest.mark.usefixtures("built")
@torch.no_grad()
def test_native_step_follows_changed_weights_and_yields_to_hooks() -> None:
    model = tiny.make("llama")
    first = step_of(model)
    assert get_native_step(model, DynamicCache()) is first
    model.model.lm_head.weight.mul_(0.5)
    assert step_of(model) is not first
    handle = model.model.model.layers[0].register_forward_hook(lambda *_: None)
    assert get_native_step(model, DynamicCache()) is None
    handle.remove()
    assert get_native_step(tiny.shared("t5"), DynamicCache()) is None


@pytest.mark.skipif(not native_level.is_compiled(), reason="about compiled libraries")
@pytest.mark.usefixtures("built")
def test_library_writable_by_others_is_not_used(folder: Path) -> None:
    assert core.build_kernels().state == "ready"
    (path,) = (folder / "decodescope" / "native").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o722)
    native_library._HOLDER = native_library._LibraryHolder()
    assert native_library.library() is None
    path.chmod(0o700)
    native_library._HOLDER = native_library._LibraryHolder()
    assert native_library.library() is not None


@pytest.fixture
def kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where nothing is built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(library_choice.LEVEL_VARIABLE, library_choice.COMPILED)
    monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
    return tmp_path / "decodescope" / "native"


def test_kernel_status_names_why_the_build_failed(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_build, "MAIN_SOURCE", kernel_folder / "nowhere.cpp")
    failed = core.build_kernels()
    assert failed.state == "failed"
    assert "nowhere.cpp" in failed.details
    assert list(kernel_folder.iterdir()) == []
    monkeypatch.setattr(kernel_build, "find_compiler", lambda: None)
    assert core.build_kernels().state == "no_compiler"
    monkeypatch.setenv(library_choice.LEVEL_VARIABLE, library_choice.OFF)
    assert core.build_kernels().state == "off"


def test_kernel_build_can_be_cancelled(kernel_folder: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    assert core.build_kernels(cancel).state == "cancelled"
    assert list(kernel_folder.iterdir()) == []
    assert native_library.library() is None


def test_damaged_library_is_not_used_and_old_ones_are_removed(kernel_folder: Path) -> None:
    kernel_folder.mkdir(parents=True, mode=0o700)
    path = native_library.library_choice().path
    assert path is not None
    path.write_bytes(b"no library")
    path.chmod(0o700)
    assert native_library.library() is None
    for number in range(6):
        (kernel_folder / f"step-{number}.so").touch()
    kernel_build._clean_up(kernel_folder)
    assert len(list(kernel_folder.iterdir())) == 4
