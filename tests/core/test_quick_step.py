"""The quick step writes what the module writes, steps aside whenever it could not, and is built safely."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import (
    DynamicCache,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

import core
from core.caches.tensors import editing
from core.caches.tensors.accounting import measure_storages
from core.caches.tensors.layouts import roomy
from core.decoding.forward import products
from core.decoding.forward import quick_step as quick_step_module
from core.decoding.forward.choosing import lean_pass
from core.decoding.forward.forward import Forward
from core.decoding.forward.lean import lean_llama
from core.decoding.forward.products import GatedProduct, Product
from core.decoding.forward.quick_step import QuickStep, quick_step
from core.decoding.speculation.drafters.arrays import ArrayPasses, array_passes
from core.decoding.speculation.drafters.built import BuiltPasses, small_passes
from core.decoding.speculation.drafters.model import ModelDrafter
from core.decoding.speculation.features import Features
from core.decoding.speculation.masks import causal
from core.decoding.speculation.passes import Passes
from core.decoding.speculation.plan import Plan
from core.decoding.speculation.processing import NodeFunnel
from core.decoding.speculation.text import Text
from core.inside import lens
from core.inside.wide import Rest, Wide, wide
from core.models.packed.eight import Plain, has_blocks, split
from core.models.packed.four import GROUP, pack_four, quantize_groups
from core.models.packed.four_rows import in_four_rows
from core.models.packed.layers import PackedLinear
from core.models.packed.rows import Rows
from core.models.packed.weighing import weigh
from core.native import building, library, place
from tests.core import tiny
from tests.core.test_lean import family, qwen2

pytestmark = pytest.mark.skipif(place.compiler() is None, reason="no C++ compiler")
FAMILIES = ("llama", "qwen3", "qwen2", "mistral", "gpt2", "gemma3", "opt", "gpt_neox", "phi3")
GREEDY = GenerationConfig(max_new_tokens=24, do_sample=False)


class Open:
    """A gate that lets everything pass, with one leaf beside each token."""

    def accept(self, drafter: int, probability: float, beside: bool = False) -> float:
        return probability

    def spreads(self) -> bool:
        return False

    def draws(self, chance: float, nodes: int) -> int:
        return 1

    def goes_on(self, chances: Sequence[float], nodes: int) -> bool:
        return True

    def is_worth(self, chance: float, nodes: int) -> bool:
        return True

    def width(self, chance: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool) -> int:
        return 2


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model on the disk."""
    path = tmp_path_factory.mktemp("tiny")
    tiny.shared("llama").model.save_pretrained(path)
    return path


def model_of(kind: str) -> core.LoadedModel:
    return qwen2() if kind == "qwen2" else family(kind)


def step_of(model: core.LoadedModel) -> QuickStep:
    step = quick_step(model, DynamicCache())
    assert step is not None
    return step


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every pass that it takes from now on."""
    calls: list[int] = []
    original = QuickStep.__call__

    def counted(self: QuickStep, ids: torch.Tensor, cache: Any, *more: Any) -> torch.Tensor:
        calls.append(ids.numel())
        return original(self, ids, cache, *more)

    monkeypatch.setattr(QuickStep, "__call__", counted)
    return calls


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", FAMILIES)
@torch.inference_mode()
def test_same_logits_and_tokens(kind: str) -> None:
    """In uneven portions of two rows, past every window; the same tokens as `generate`."""
    model = model_of(kind)
    lean, step = lean_pass(model, DynamicCache()), step_of(model)
    assert lean is not None
    ids, mine, theirs = torch.tensor([tiny.prompt(30), tiny.prompt(30, 1)]), DynamicCache(), DynamicCache()
    for portion in ids.split([12, 1, 5, 1, 7, 4], 1):
        wanted = model.model(portion, **{model.cache_name: theirs}).logits
        is_served = step.serves(portion, mine)
        assert is_served == (portion.shape[1] < 12)
        torch.testing.assert_close((step if is_served else lean)(portion, mine, 0), wanted, rtol=1e-4, atol=2e-4)
    assert measure_storages(mine) == measure_storages(theirs)
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
def test_the_same_run_as_without(name: str, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts and figures of every step: ranks and ids equal, probabilities to what floats hold."""
    model = tiny.shared("llama")
    request = core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=12, **_RUNS[name]), cache=cache, seed=3)
    step_of(model)  # it is tried before its first use
    calls = calls_of(monkeypatch)
    mine = core.run(model, request)
    assert len(calls) == 11
    library.switch_quick_steps(False)
    theirs = core.run(model, request)
    assert mine.sequences == theirs.sequences
    for one, other in zip(told(mine), told(theirs), strict=True):
        assert [(a.id, a.rank) for a in one.alternatives] == [(a.id, a.rank) for a in other.alternatives]
        assert [(s.name, s.survivors) for s in one.funnel] == [(s.name, s.survivors) for s in other.funnel]
        figures = [(e.probability, e.raw_log_probability, e.entropy, e.varentropy) for e in (one, other)]
        assert figures[0] == pytest.approx(figures[1], abs=2e-4)


def told(result: core.Result) -> list[core.events.TokenChosen]:
    return [event for event in result.events if isinstance(event, core.events.TokenChosen)]


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_a_tree_and_a_chain_behind_the_text() -> None:
    """Two children of one parent in one pass equal two passes of their own; a masked chain equals a plain one."""
    model, text, low = tiny.shared("llama"), tiny.prompt(12), torch.finfo(torch.float32).min
    lean, step, cache, plain = lean_pass(model, DynamicCache()), step_of(model), DynamicCache(), DynamicCache()
    assert lean is not None
    mask = torch.tensor([[0.0] * 12 + [0, low], [0.0] * 12 + [low, 0]])[None, None]
    for one in (cache, plain):
        lean(torch.tensor([text]), one)
    mine = step(torch.tensor([[8, 9]]), cache, 0, mask, torch.tensor([[12, 12]]))
    theirs = [model.model(torch.tensor([[*text, child]])).logits[0, -1] for child in (8, 9)]
    torch.testing.assert_close(mine[0], torch.stack(theirs), rtol=1e-4, atol=1e-4)
    cache.crop(-2)
    chain, below = torch.tensor([[8, 9, 4]]), torch.full((3, 15), low).triu(13)
    assert torch.equal(step(chain, cache, 0, below, torch.tensor([[12, 13, 14]])), step(chain, plain, 0))


@pytest.mark.usefixtures("built")
def test_drafts_are_read_by_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt = tiny.make("llama"), tiny.prompt(6) * 3  # its own: how long drafts become is remembered with it
    step_of(model)
    calls = calls_of(monkeypatch)
    request = core.Request(prompt, GREEDY, strategy="prompt_lookup")
    assert core.run(model, request).sequences == tiny.reference(model, prompt, GREEDY)
    assert max(calls) > 1


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("weights", ["float32", "bfloat16", "int8", "int4"])
@torch.inference_mode()
def test_other_weights_and_each_token_as_alone(weights: str, kept: Path) -> None:
    """To the last bit: four tokens at once, four rows at once, and one by one."""
    model = core.load(kept, weights=weights)
    step, lean = step_of(model), lean_pass(model, DynamicCache())
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
def test_weights_that_are_exact_in_fewer_bits_are_read_so(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit what all their bits give; the quicker way is taken, and none where a number is not exact."""
    model, ways = tiny.make("llama"), []
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.copy_(weight.to(dtype))
    found = library.library()
    assert found is not None
    choose = quick_step_module._quicker
    monkeypatch.setattr(quick_step_module, "_quicker", lambda *both: ways.extend(both[:2]) or choose(*both))
    assert step_of(model) in ways
    plain, shorter = ways
    assert not plain.is_shorter
    assert shorter.is_shorter == (dtype == torch.bfloat16 or found.has_halves)
    lean = lean_pass(model, DynamicCache())
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
    assert not step_of(model).is_shorter


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_packed_numbers_are_moved_not_changed(kept: Path) -> None:
    model = core.load(kept, weights="int8")
    ids, held = torch.tensor([tiny.prompt(50)]), model.weight_bytes
    before = [model.model(portion).logits for portion in (ids, ids[:, :3])]
    step_of(model)
    after = [model.model(portion).logits for portion in (ids, ids[:, :3])]
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    found = library.library()
    assert found is not None
    rows = sum(module.out_features for module in model.model.modules() if isinstance(module, PackedLinear))
    assert weigh(model.model) == held + (4 * rows if found.shift and not has_blocks() else 0)


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
    found = library.library()
    assert found is not None
    matrix, wanted = Rows(numbers, scales, found), Plain(numbers, scales).of_split(halves, steps)
    for first, count in ((0, 30), (0, 1), (3, 2), (5, 11), (2, 13)):
        some = halves.view(2, 30, -1)[:, first : first + count].flatten(0, 1)
        assert torch.equal(matrix.of_split(some, steps[first : first + count]), wanted[first : first + count])


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("shape", [(16, 32), (64, 64), (112, 96), (48, 736), (16, 4192)])
def test_four_bits_in_rows_are_the_same_numbers(shape: tuple[int, int]) -> None:
    """Whole pairs of groups, eights of them and one left over; each vector as alone, to the last bit."""
    generator = torch.Generator().manual_seed(0)
    rows, vectors = torch.randn(shape, generator=generator), torch.randn(11, shape[1], generator=generator)
    vectors[:, 5] *= 300  # one large feature, as language models have them
    found = library.library()
    assert found is not None
    packed = pack_four(rows)
    matrix, (numbers, beside) = in_four_rows(packed, found), quantize_groups(rows)
    scale, offset = (part.t().double().unsqueeze(-1) for part in beside.unbind(-1))
    exact = ((numbers.unflatten(-1, (-1, GROUP)) - 8) * scale + offset).flatten(-2)
    halves, steps = split(vectors)
    coarse, fine = halves.double().chunk(2)
    together, wanted = matrix.of(vectors), (coarse + fine / 254) * steps @ exact.t()
    assert (together - wanted).norm() / wanted.norm() < 1e-6
    assert torch.equal(together, torch.cat([matrix.of(vector[None]) for vector in vectors]))
    assert matrix.nbytes == packed.nbytes
    assert in_four_rows(matrix, found) is matrix


@pytest.mark.usefixtures("built")
@torch.no_grad()
def test_it_follows_changed_weights_and_steps_aside_for_hooks() -> None:
    model = tiny.make("llama")
    first = step_of(model)
    assert quick_step(model, DynamicCache()) is first
    model.model.lm_head.weight.mul_(0.5)
    assert step_of(model) is not first
    handle = model.model.model.layers[0].register_forward_hook(lambda *_: None)
    assert quick_step(model, DynamicCache()) is None
    handle.remove()
    assert quick_step(tiny.shared("t5"), DynamicCache()) is None
    assert quick_step(tiny.make("gemma2"), DynamicCache()) is None  # its attention is capped


@pytest.mark.usefixtures("built")
def test_it_is_built_once_and_used_only_while_nobody_else_may_write_it(folder: Path) -> None:
    assert core.quicken().state == "ready"
    (path,) = (folder / "tokenscope" / "native").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o722)
    library._SHELF = library._Shelf()
    assert library.library() is None
    path.chmod(0o700)
    library._SHELF = library._Shelf()
    assert library.library() is not None


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where nothing is built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(place.SWITCH, raising=False)
    monkeypatch.setattr(library, "_SHELF", library._Shelf())
    return tmp_path / "tokenscope" / "native"


def test_what_keeps_it_from_being_built_is_said(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MAIN", elsewhere / "nowhere.cpp")
    failed = core.quicken()
    assert failed.state == "failed"
    assert "nowhere.cpp" in failed.details
    assert list(elsewhere.iterdir()) == []
    monkeypatch.setattr(building, "compiler", lambda: None)
    assert core.quicken().state == "no_compiler"
    monkeypatch.setenv(place.SWITCH, "0")
    assert core.quicken().state == "off"


def test_it_can_be_broken_off(elsewhere: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    assert core.quicken(cancel).state == "cancelled"
    assert list(elsewhere.iterdir()) == []
    assert library.library() is None


def test_a_damaged_library_is_left_alone_and_old_ones_go(elsewhere: Path) -> None:
    elsewhere.mkdir(parents=True, mode=0o700)
    path = place.place()
    assert path is not None
    path.write_bytes(b"no library")
    path.chmod(0o700)
    assert library.library() is None
    for number in range(6):
        (elsewhere / f"step-{number}.so").touch()
    building._tidy(elsewhere)
    assert len(list(elsewhere.iterdir())) == 4


def wide_model(kind: str) -> core.LoadedModel:
    """Of the Llama kind, with heads of 32 numbers; some share keys, some are normed, some have biases."""
    torch.manual_seed(0)
    config, network = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }[kind]
    made = network(config(
        vocab_size=61, hidden_size=48, intermediate_size=72, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
    ))  # fmt: skip
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return core.wrap(made)


def wide_of(model: core.LoadedModel) -> Wide:
    lean = lean_llama(model)
    assert lean is not None
    found = wide(model, lean)
    assert found is not None
    return found


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@torch.inference_mode()
def test_many_tokens_of_several_texts(kind: str, threads: int) -> None:
    """Between the layers and behind texts that begin alike what the module itself finds."""
    torch.set_num_threads(threads)  # put back for every test
    model = wide_model(kind)
    reader, ids, cache = wide_of(model), tiny.prompt(45), DynamicCache()
    told = model.model(torch.tensor([ids]), **{model.cache_name: cache}, output_hidden_states=True)
    states = reader.states([Rest(0, ids)])
    torch.testing.assert_close(states[:-1], torch.cat(told.hidden_states[:-1]), rtol=1e-4, atol=1e-4)
    rests = [
        Rest(kept, tiny.prompt(count, seed)) for seed, (kept, count) in enumerate(((44, 1), (40, 9), (9, 18), (0, 5)))
    ]
    found = reader.endings(rests, [(layer.keys, layer.values) for layer in cache.layers])
    alone = [model.model(torch.tensor([[*ids[:kept], *own]])).logits[0, -1] for kept, own in rests]
    torch.testing.assert_close(found, torch.stack(alone), rtol=1e-4, atol=2e-4)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("threads", [1, 2])
@torch.inference_mode()
def test_any_number_of_tokens_as_one_by_one(threads: int) -> None:
    """To the last bit, in matrices that lie in panels: some are filled up, and so many tokens that they are taken in
    two portions."""
    torch.set_num_threads(threads)
    model = wide_model("qwen2")
    step, lean, ids = step_of(model), lean_pass(model, DynamicCache()), torch.tensor([tiny.prompt(70)])
    assert lean is not None
    assert step._quick.in_panels
    wanted = model.model(ids).logits[:, 9:]
    found = []
    for count in (1, 2, 3, 13, 32):
        cache = DynamicCache()
        lean(ids[:, :9], cache)
        found.append(torch.cat([step(some, cache, 0) for some in ids[:, 9:].split(count, 1)], 1))
    torch.testing.assert_close(found[0], wanted, rtol=1e-4, atol=2e-4)
    assert all(torch.equal(several, found[0]) for several in found)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 3, 1), (5, 48, 32), (24, 50, 77), (35, 21, 130)])
def test_products_of_many_vectors(rows: int, inputs: int, outputs: int, threads: int) -> None:
    """Whole panels and parts of one, as many vectors as go together and less; nothing behind the last is touched."""
    torch.set_num_threads(threads)
    vectors, weight = torch.randn(rows, inputs), torch.randn(2 * outputs, inputs)
    gate, up = weight.chunk(2)
    found, bias, room = library.library(), torch.randn(outputs), torch.randn(rows + 1, 2 * outputs)
    assert found is not None
    before, near = room.clone(), {"rtol": 1e-4, "atol": 1e-4}
    added = Product(found, [(gate, None), (up, bias)]).add_to(room[:-1], vectors)
    torch.testing.assert_close(added, before[:-1] + F.linear(vectors, weight) + F.pad(bias, (outputs, 0)), **near)
    assert room[-1].equal(before[-1])
    torch.testing.assert_close(Product(found, [(up, bias)])(vectors), F.linear(vectors, up, bias), **near)
    gated = GatedProduct(found, gate, up)(vectors)
    torch.testing.assert_close(gated, F.silu(F.linear(vectors, gate)) * F.linear(vectors, up), **near)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3"])
@torch.inference_mode()
def test_long_prompts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their products are taken by the library where it is quicker, and where it comes to the same alone."""
    torch.set_num_threads(1)
    model, ids = model_of(kind), torch.tensor([tiny.prompt(40)])
    lean, calls = lean_pass(model, DynamicCache()), list[int]()
    product = library.Library.product
    monkeypatch.setattr(
        library.Library, "product", lambda self, *given: calls.append(given[2]) or product(self, *given)
    )
    monkeypatch.setattr(products, "_is_quicker", lambda found: True)
    assert lean is not None
    torch.testing.assert_close(lean(ids, DynamicCache(), 0), model.model(ids).logits, rtol=1e-4, atol=2e-4)
    assert set(calls) == {40}
    calls.clear()
    lean(ids[:, :15], DynamicCache(), 0)
    torch.set_num_threads(2)
    lean(ids, DynamicCache(), 0)
    assert not calls


@pytest.mark.usefixtures("built")
def test_products_that_are_slow_or_wrong_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = chain.from_iterable((now, now + 0.1, now + 0.3) for now in range(1000))
    monkeypatch.setattr(products.time, "perf_counter", lambda: next(clock))
    found = library.library()
    assert found is not None
    assert products._is_quicker.__wrapped__(found)
    clock = chain.from_iterable((now, now + 0.3, now + 0.4) for now in range(1000))
    assert not products._is_quicker.__wrapped__(found)
    clock = chain.from_iterable((now, now + 0.1, now + 0.3) for now in range(1000))
    monkeypatch.setattr(library.Library, "product", lambda self, *given: None)
    assert not products._is_quicker.__wrapped__(found)


@pytest.mark.usefixtures("built")
def test_looks_inside_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = wide_model("llama"), tiny.prompt(24)
    wide_of(model)
    calls: list[int] = []
    layer = Wide._pass
    monkeypatch.setattr(Wide, "_pass", lambda self, *given: calls.append(given[0]) or layer(self, *given))
    mine = list(core.lens_text(model, ids, 1)), core.occlude(model, ids, 23)
    assert set(calls) == {0, 1, 2}
    library.switch_quick_steps(False)
    theirs = list(core.lens_text(model, ids, 1)), core.occlude(model, ids, 23)
    for one, other in zip(chain(*mine[0], mine[1]), chain(*theirs[0], theirs[1]), strict=True):
        assert tuple(one) == pytest.approx(tuple(other), abs=1e-4)


@pytest.mark.usefixtures("built")
def test_choices_of_layers_are_those_of_torch() -> None:
    """Of equal scores the first, and none of them before the chosen one; a last few that fill no lane."""
    scores = torch.randn(6, 61).round(decimals=1)
    scores[0, 7] = scores[0, 60] = scores.max() + 1
    chosen = torch.tensor([60, 1, 2, 3, 4, 5])
    (found,), wanted = lens._figures_of(scores, chosen), lens._figures_by_torch(scores, chosen)
    assert found[0].tolist() == wanted[0].tolist()
    assert found[3].tolist() == wanted[3].tolist()
    torch.testing.assert_close(torch.stack(found[1:3]), torch.stack(wanted[1:3]))
    assert found[3][0] == 1


@pytest.mark.usefixtures("built")
def test_a_wide_pass_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.Library, "gated", lambda self, *given: None)
    model = wide_model("llama")
    lean = lean_llama(model)
    assert lean is not None
    assert wide(model, lean) is None
    assert wide(tiny.shared("llama"), lean_llama(tiny.shared("llama"))) is None  # its heads are too narrow


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@torch.inference_mode()
def test_drafts_of_a_small_model(kind: str) -> None:
    """Text, a tree of more nodes than a pass takes, a kept path, a longer and a shorter text: as on arrays."""
    model = wide_model(kind)
    mine, theirs = small_passes(model), array_passes(model)
    assert isinstance(mine, BuiltPasses)
    level = np.eye(20, 2, dtype=bool)
    level[np.arange(20), np.arange(20) % 2] = True
    sees = np.concatenate([level, np.eye(20, dtype=bool)], 1)
    steps: list[Callable[[Any], torch.Tensor | None]] = [
        lambda reader: reader.text(torch.tensor([tiny.prompt(11)])),
        lambda reader: reader.nodes(torch.tensor([[21, 22]]), (0, 0), np.eye(2, dtype=bool)),
        lambda reader: reader.nodes(torch.tensor([list(range(20))]), (1,) * 20, sees),
        lambda reader: reader.settle((1, 19)),
        lambda reader: reader.nodes(torch.tensor([[32]]), (0,), np.ones((1, 1), dtype=bool)),
        lambda reader: reader.settle(()),
        lambda reader: reader.text(torch.tensor([tiny.prompt(20, 1)])),
        lambda reader: reader.text(torch.tensor([tiny.prompt(33, 2)])),
        lambda reader: reader.crop(7),
        lambda reader: reader.text(torch.tensor([list(range(4, 50)) * 6])),
        lambda reader: reader.text(torch.tensor([[7]])),
    ]
    for step in steps:
        found, expected = step(mine), step(theirs)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-4)
    assert (mine.length, mine.extra) == (7 + 6 * 46 + 1, 0)
    library.switch_quick_steps(False)
    assert type(small_passes(model)) is ArrayPasses
    library.switch_quick_steps(True)


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_states_for_heads() -> None:
    """What the module's own head reads, of every token and with a mask, without the module being asked."""
    model = wide_model("qwen3")
    step_of(model)
    forward, ids, cache = Forward(model, roomy(model)), tiny.prompt(20), DynamicCache()
    forward(torch.tensor([ids[:12]]))
    wanted = model.model(torch.tensor([ids]), **{model.cache_name: cache}, output_hidden_states=True).hidden_states[-1]
    passes = Passes(forward, 12)
    passes.features = Features()
    passes.text(torch.tensor([ids[12:13]]))
    passes.nodes(torch.tensor([ids[13:]]), range(7), causal(7))
    passes.settle(range(7))
    torch.testing.assert_close(passes.features.take(0, 8), wanted[:, 12:], rtol=1e-4, atol=1e-4)
    assert len(forward.ending(torch.tensor([[5]])).hidden or ()) == 1


@pytest.mark.usefixtures("built")
@torch.inference_mode()
def test_room_behind_a_text_is_taken_by_drafts_and_given_back() -> None:
    """Rounds of drafts move nothing: the storage stays, and every row is what a pass of its own would give."""
    model = tiny.shared("llama")
    step_of(model)
    ids, forward, plain = tiny.prompt(64), Forward(model, roomy(model)), Forward(model, roomy(model))
    passes = Passes(forward)
    for one in (passes.text, lambda text: plain(text)):
        one(torch.tensor([ids[:12]]))
    places = []
    for begin in range(12, 60, 2):  # more than there is room for at first
        drafted = torch.tensor([[ids[begin], ids[begin + 1], 7, 8]])
        logits = passes.nodes(drafted, range(4), causal(4))
        passes.settle((0, 1))
        expected = plain(torch.tensor([ids[begin : begin + 2]]), keep=0).logits[0]
        torch.testing.assert_close(logits[:2], expected, rtol=1e-4, atol=1e-4)
        places.append(forward.cache.layers[0].keys.data_ptr())
    assert len(set(places)) == 2
    twin = forward.branch()
    twin(torch.tensor([[9]]))
    torch.testing.assert_close(passes.text(torch.tensor([ids[60:61]])), plain(torch.tensor([ids[60:61]])).last)
    editing.compact(forward.cache)
    for mine, theirs in zip(forward.cache.layers, plain.cache.layers, strict=True):
        assert mine.keys.untyped_storage().nbytes() == theirs.keys.untyped_storage().nbytes()
        torch.testing.assert_close(mine.keys, theirs.keys, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "plan", [Plan(6), Plan(6, threshold=0.3), Plan(6, leaves=True, gate=Open())], ids=["plain", "threshold", "gate"]
)
@torch.inference_mode()
def test_a_chain_that_the_machine_code_follows_is_the_one_of_tensors(plan: Plan) -> None:
    model, text = wide_model("llama"), Text(tiny.prompt(11), torch.device("cpu"))
    drafts = []
    for reader in (small_passes(model), array_passes(model)):
        assert reader is not None
        funnel, dice = NodeFunnel([]), torch.Generator()
        drafter = ModelDrafter("d", reader, funnel, dice, 0, lambda: False, model.vocabulary, None)
        branch = drafter.propose(text, plan)
        assert branch is not None
        drafter.settle(branch.ids[:2])
        drafts.append((branch.ids, branch.parents, reader.length, branch.probabilities))
    (*mine, sure), (*theirs, shares) = drafts
    assert mine == theirs
    assert sure == pytest.approx(shares, abs=1e-5)
