"""Native passes over many tokens: full texts, matrix products and interpretability equal torch."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch.nn import functional as F
from transformers import DynamicCache

from decodescope import core
from decodescope.core.decoding.forward import fused_layers
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder, select_fused_pass
from decodescope.core.decoding.forward.fused_layers import NativeGatedMlp, NativeLinear
from decodescope.core.interpretability import lens
from decodescope.core.interpretability.native_text_pass import NativeTextPass, TextRemainder, native_text_pass
from decodescope.core.native import native_library
from tests.core import tiny
from tests.core.native_step_models import model_of, step_of, wide_model

pytestmark = pytest.mark.usefixtures("needs_compiler")


def wide_of(model: core.LoadedModel) -> NativeTextPass:
    lean = get_fused_decoder(model)
    assert lean is not None
    found = native_text_pass(model, lean)
    assert found is not None
    return found


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@torch.inference_mode()
def test_native_pass_over_several_texts_equals_torch(kind: str, threads: int) -> None:
    """Compare with the module between the layers, also for texts with a common beginning."""
    torch.set_num_threads(threads)  # put back for every test
    model = wide_model(kind)
    reader, ids, cache = wide_of(model), tiny.prompt(45), DynamicCache()
    reported = model.model(torch.tensor([ids]), **{model.cache_name: cache}, output_hidden_states=True)
    states = reader.states([TextRemainder(0, ids)])
    torch.testing.assert_close(states[:-1], torch.cat(reported.hidden_states[:-1]), rtol=1e-4, atol=1e-4)
    rests = [
        TextRemainder(stored, tiny.prompt(count, seed))
        for seed, (stored, count) in enumerate(((44, 1), (40, 9), (9, 18), (0, 5)))
    ]
    found = reader.last_logits(rests, [(layer.keys, layer.values) for layer in cache.layers])
    alone = [model.model(torch.tensor([[*ids[:stored], *own]])).logits[0, -1] for stored, own in rests]
    torch.testing.assert_close(found, torch.stack(alone), rtol=1e-4, atol=2e-4)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("threads", [1, 2])
@torch.inference_mode()
def test_native_pass_equals_single_tokens_for_any_count(threads: int) -> None:
    """Compare to the last bit, with matrices in panels, some of them padded, and with tokens in two portions."""
    torch.set_num_threads(threads)
    model = wide_model("qwen2")
    step, lean, ids = step_of(model), select_fused_pass(model, DynamicCache()), torch.tensor([tiny.prompt(70)])
    assert lean is not None
    assert step._weights.is_in_panels
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
def test_native_products_of_many_vectors_equal_torch(rows: int, inputs: int, outputs: int, threads: int) -> None:
    """Whole panels and parts of one, as many vectors as go together and less; nothing behind the last is touched."""
    torch.set_num_threads(threads)
    vectors, weight = torch.randn(rows, inputs), torch.randn(2 * outputs, inputs)
    gate, up = weight.chunk(2)
    found, bias, room = native_library.library(), torch.randn(outputs), torch.randn(rows + 1, 2 * outputs)
    assert found is not None
    before, near = room.clone(), {"rtol": 1e-4, "atol": 1e-4}
    added = NativeLinear(found, [(gate, None), (up, bias)]).add_to(room[:-1], vectors)
    torch.testing.assert_close(added, before[:-1] + F.linear(vectors, weight) + F.pad(bias, (outputs, 0)), **near)
    assert room[-1].equal(before[-1])
    torch.testing.assert_close(NativeLinear(found, [(up, bias)])(vectors), F.linear(vectors, up, bias), **near)
    gated = NativeGatedMlp(found, gate, up)(vectors)
    torch.testing.assert_close(gated, F.silu(F.linear(vectors, gate)) * F.linear(vectors, up), **near)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["llama", "qwen2", "gemma3"])
@torch.inference_mode()
def test_long_prompts_use_native_products(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their products are taken by the library where it is quicker, and where it comes to the same alone."""
    torch.set_num_threads(1)
    model, ids = model_of(kind), torch.tensor([tiny.prompt(40)])
    lean, calls = select_fused_pass(model, DynamicCache()), list[int]()
    product = native_library.NativeLibrary.matmul
    monkeypatch.setattr(
        native_library.NativeLibrary, "matmul", lambda self, *given: calls.append(given[2]) or product(self, *given)
    )
    monkeypatch.setattr(fused_layers, "_is_native_faster", lambda found: True)
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
    monkeypatch.setattr(fused_layers.time, "perf_counter", lambda: next(clock))
    found = native_library.library()
    assert found is not None
    assert fused_layers._is_native_faster.__wrapped__(found)
    clock = chain.from_iterable((now, now + 0.3, now + 0.4) for now in range(1000))
    assert not fused_layers._is_native_faster.__wrapped__(found)
    clock = chain.from_iterable((now, now + 0.1, now + 0.3) for now in range(1000))
    wrong = torch.zeros(1)
    monkeypatch.setattr(fused_layers.NativeLinear, "__call__", lambda self, vectors: wrong)
    assert not fused_layers._is_native_faster.__wrapped__(found)


@pytest.mark.usefixtures("built")
def test_native_lens_and_occlusion_equal_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = wide_model("llama"), tiny.prompt(24)
    wide_of(model)
    calls: list[int] = []
    layer = NativeTextPass._run_layer
    monkeypatch.setattr(
        NativeTextPass, "_run_layer", lambda self, *given: calls.append(given[0]) or layer(self, *given)
    )
    result = list(core.lens_text(model, ids, 1)), core.occlude(model, ids, 23)
    assert set(calls) == {0, 1, 2}
    native_library.enable_native_steps(False)
    reference = list(core.lens_text(model, ids, 1)), core.occlude(model, ids, 23)
    for one, other in zip(chain(*result[0], result[1]), chain(*reference[0], reference[1]), strict=True):
        assert tuple(one) == pytest.approx(tuple(other), abs=1e-4)


@pytest.mark.usefixtures("built")
def test_native_lens_statistics_equal_torch() -> None:
    """Check that the first of equal scores is chosen, also among the last ones that fill no lane."""
    scores = torch.randn(6, 61).round(decimals=1)
    scores[0, 7] = scores[0, 60] = scores.max() + 1
    chosen = torch.tensor([60, 1, 2, 3, 4, 5])
    (found,), wanted = lens._logit_statistics(scores, chosen), lens._logit_statistics_torch(scores, chosen)
    assert found[0].tolist() == wanted[0].tolist()
    assert found[3].tolist() == wanted[3].tolist()
    torch.testing.assert_close(torch.stack(found[1:3]), torch.stack(wanted[1:3]))
    assert found[3][0] == 1


@pytest.mark.usefixtures("built")
def test_a_wide_pass_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_library.NativeLibrary, "gated_matmul", lambda self, *given: None)
    model = wide_model("llama")
    lean = get_fused_decoder(model)
    assert lean is not None
    assert native_text_pass(model, lean) is None
    assert (
        native_text_pass(tiny.shared("llama"), get_fused_decoder(tiny.shared("llama"))) is None
    )  # its heads are too narrow
