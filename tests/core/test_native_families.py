"""The native step and the fused pass of every common family of decoders equal the module."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from transformers import DynamicCache, GenerationConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from decodescope import core
from decodescope.core.decoding.forward import fused_decoder, native_step
from decodescope.core.decoding.forward.fused_decoder import FusedDecoder, select_fused_pass
from decodescope.core.decoding.forward.module_map import alibi_slopes, map_modules
from decodescope.core.decoding.forward.native_step import get_native_step
from tests.core import tiny
from tests.core.native_shapes import SHAPES
from tests.core.native_step_models import step_of

needs_compiler = pytest.mark.usefixtures("needs_compiler")
UNSTABLE = {("qwen3_moe", "bfloat16")}
"""Rounding routes tokens to other experts: the module differs from itself by a third."""
PORTIONS = (12, 1, 5, 1, 6, 1, 4)
"""Tokens of each pass: they go past every window, and past the length at which longrope and dynamic NTK change."""


def model_of(kind: str) -> core.LoadedModel:
    return core.wrap(SHAPES[kind].make())


def relative(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


@pytest.mark.parametrize("kind", SHAPES)
@torch.inference_mode()
def test_fused_passes_have_the_same_logits(kind: str) -> None:
    model, cache, reference = model_of(kind), DynamicCache(), DynamicCache()
    fused = select_fused_pass(model, DynamicCache())
    assert isinstance(fused, FusedDecoder)
    ids = torch.tensor([tiny.prompt(30), tiny.prompt(30, 1)])
    for portion in ids.split(PORTIONS, 1):
        wanted = model.model(portion, use_cache=True, **{model.cache_name: reference}).logits
        assert relative(fused(portion, cache, 0), wanted) < 1e-4


@pytest.mark.every(4)
@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize("kind", SHAPES)
@torch.inference_mode()
def test_native_steps_have_the_same_logits(kind: str, copies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With matrices copied into panels, and, as for models too large for that, as they lie."""
    monkeypatch.setattr(fused_decoder, "MAX_JOINED_BYTES", fused_decoder.MAX_JOINED_BYTES if copies else 0)
    model, cache, reference = model_of(kind), DynamicCache(), DynamicCache()
    step, fused = step_of(model), select_fused_pass(model, DynamicCache())
    assert fused is not None
    ids = torch.tensor([tiny.prompt(30), tiny.prompt(30, 1)])
    for portion in ids.split(PORTIONS, 1):
        wanted = model.model(portion, use_cache=True, **{model.cache_name: reference}).logits
        run = step if step.supports(portion, cache) else fused
        assert (run is step) == (portion.shape[1] < 12)
        assert relative(run(portion, cache, 0), wanted) < 1e-4


@pytest.mark.every(2)
@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", SHAPES)
def test_texts_equal_those_of_generate(kind: str) -> None:
    model = model_of(kind)
    step_of(model)
    prompt = tiny.prompt(24 if model.context is None or model.context > 24 else 8)
    config = GenerationConfig(max_new_tokens=min(20, (model.context or 64) - len(prompt)), do_sample=False)
    assert core.run(model, core.Request(prompt, config)).sequences == tiny.reference(model, prompt, config)


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", SHAPES)
@torch.inference_mode()
def test_batched_tokens_have_the_logits_of_single_tokens(kind: str) -> None:
    """To the last bit: four tokens at once, four rows at once, and one by one."""
    model = model_of(kind)
    step, fused = step_of(model), select_fused_pass(model, DynamicCache())
    assert fused is not None
    single, at_once, rows = DynamicCache(), DynamicCache(), DynamicCache()
    for cache in (single, at_once, rows):
        fused(torch.tensor([tiny.prompt(9)]), cache)
    rows.batch_repeat_interleave(4)
    more = torch.tensor([[7, 8, 9, 10]])
    singly = torch.cat([step(token, single) for token in more.split(1, 1)], 1)
    assert torch.equal(step(more, at_once, 0), singly)
    assert torch.equal(step(more[:, :1].expand(4, 1), rows), singly[:, :1].expand(4, -1, -1))


@pytest.mark.every(6)
@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("kind", "weights"),
    [pair for pair in itertools.product(SHAPES, ("bfloat16", "int8", "int4")) if pair not in UNSTABLE],
)
@torch.inference_mode()
def test_native_step_supports_other_weight_formats(kind: str, weights: str, tmp_path: Path) -> None:
    SHAPES[kind].make().save_pretrained(tmp_path)
    model, cache = core.load(tmp_path, weights=weights), DynamicCache()
    step, ids = step_of(model), torch.tensor([tiny.prompt(16)])
    model.model(ids[:, :12], use_cache=True, **{model.cache_name: cache})
    wanted = model.model(ids).logits
    allowed = 1e-3
    if weights == "bfloat16":
        allowed = max(0.04, 2 * fused_decoder._own_difference(model, [ids], [wanted.float()]))
    assert relative(step(ids[:, 12:], cache, 0), wanted[:, 12:]) < allowed


@pytest.mark.parametrize("kind", ["phi3", "llama_ntk"])
def test_angles_follow_the_length_as_in_the_module(kind: str) -> None:
    """Short again after a long text, too: as in a module that has read no other text."""
    (rope,) = map_modules(SHAPES[kind].make(), False).ropes.values()
    assert not rope.is_fixed
    for start, stop in ((0, 12), (12, 20), (20, 21), (21, 40), (0, 30), (0, 5), (0, 20)):
        own = SHAPES[kind].make().model.rotary_emb
        wanted = own(torch.zeros(1), torch.arange(start, stop)[None])
        for positions in (slice(start, stop), torch.arange(start, stop)):
            cos, sin = rope.lookup(start, stop).at(positions)
            half = sin.shape[-1] // 2
            torch.testing.assert_close(cos, wanted[0][0], rtol=0, atol=0)
            torch.testing.assert_close(torch.cat([-sin[:, :half], sin[:, half:]], 1), wanted[1][0], rtol=0, atol=0)


@needs_compiler
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("kind", ["phi3", "llama_ntk", "gptj"])
@torch.inference_mode()
def test_children_of_one_parent_have_the_same_angles(kind: str) -> None:
    """Past the length at which the angles change, a table may begin after position 0."""
    model, children = model_of(kind), (8, 9)
    step, fused = step_of(model), select_fused_pass(model, DynamicCache())
    assert fused is not None
    text, past = torch.tensor([tiny.prompt(24)]), 24
    wanted = []
    for child in children:
        own, reference = model_of(kind), DynamicCache()  # a module with dynamic NTK keeps the length of its last text
        own.model(text, use_cache=True, **{model.cache_name: reference})
        wanted.append(own.model(torch.tensor([[child]]), **{model.cache_name: reference}).logits[0, -1])
    mask = torch.zeros(1, 1, 2, past + 2)
    mask[..., 0, past + 1] = mask[..., 1, past] = torch.finfo(torch.float32).min
    for run in (fused, step):
        cache = DynamicCache()
        fused(text, cache)
        found = run(torch.tensor([children]), cache, 0, mask, torch.tensor([[past, past]]))
        assert relative(found[0], torch.stack(wanted)) < 1e-4, type(run).__name__


def test_positions_beyond_the_table_raise_an_error() -> None:
    (rope,) = map_modules(SHAPES["gptj"].make(), False).ropes.values()
    assert rope.is_adjacent
    assert len(rope.lookup(255, 256).cos) == 256
    with pytest.raises(IndexError, match="256 positions"):
        rope.lookup(256, 257)


@pytest.mark.parametrize("heads", [4, 6, 12, 16])
def test_alibi_slopes_equal_those_of_transformers(heads: int) -> None:
    bias = build_alibi_tensor(torch.ones(1, 7), heads, torch.float32).view(heads, 7)
    torch.testing.assert_close(alibi_slopes(heads)[:, None] * torch.arange(7), bias)


@needs_compiler
@pytest.mark.usefixtures("built")
def test_native_step_with_deviating_results_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor that only the native step leaves out is found by the comparison with the module."""
    model = model_of("granite")
    original = native_step.map_modules

    def without_factor(*given: object) -> object:
        from dataclasses import replace

        parts = original(*given)
        return replace(parts, layers=tuple(replace(layer, residual_scale=1.0) for layer in parts.layers))

    monkeypatch.setattr(native_step, "map_modules", without_factor)
    assert get_native_step(model, DynamicCache()) is None
