"""The quantized cache: codes, bytes, errors, and what it keeps exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.quantized import (
    QuantizationSettings,
    QuantizedLayer,
    QuantizedStorage,
    is_installed,
    pack_codes,
    quantizer_for,
    unpack_codes,
)
from decodescope.core.errors import CacheError
from decodescope.core.events import CacheMeasured
from tests.core import tiny
from tests.long import every

ENGINES = [
    pytest.param(
        engine, bits,
        marks=pytest.mark.skipif(not is_installed(engine), reason=f"{engine} is an optional library"),
    )
    for engine, widths in {"built-in": (1, 2, 4, 8), "quanto": (2, 4), "hqq": (1, 2, 4, 8), "fp8": (8,)}.items()
    for bits in widths
]  # fmt: skip
LARGEST_ERROR = {1: 0.75, 2: 0.45, 4: 0.09, 8: 0.03}
"""Of Gaussian numbers in groups of 32."""


def filled(
    recipe: QuantizationSettings, tokens: int, rows: int = 1, dtype: torch.dtype = torch.float32
) -> tuple[Any, Any]:
    """A layer after a prefill of `tokens`, and the keys it was given."""
    torch.manual_seed(0)
    keys = torch.randn(rows, 2, tokens, 16, dtype=dtype)
    layer = QuantizedLayer(recipe)
    layer.update(keys, keys * 2)
    return layer, keys


def size(model: core.LoadedModel, length: int, options: dict[str, Any]) -> float:
    return core.caches.registry["quantized"].predict(model, length, 1, options)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_codes_survive_packing(bits: int) -> None:
    codes = torch.randint(0, 2**bits, (3, 64), dtype=torch.uint8)
    packed = pack_codes(codes, bits)
    assert packed.shape == (3, 64 * bits // 8)
    assert torch.equal(unpack_codes(packed, bits), codes)


@pytest.mark.parametrize(("engine", "bits"), ENGINES)
@pytest.mark.parametrize("axis", ["channel", "token"])
def test_dequantized_values_are_close(engine: str, bits: int, axis: str) -> None:
    layer, keys = filled(QuantizationSettings(engine, bits, axis, axis), 130)
    seen, _ = layer.update(keys[:, :, :1], keys[:, :, :1])
    lost = ((seen[:, :, :128] - keys[:, :, :128]).norm() / keys[:, :, :128].norm()).item()
    # HQQ starts from the extremes, and two extremes are a poor pair of codes.
    assert lost <= (1.4 if (engine, bits) == ("hqq", 1) else LARGEST_ERROR[bits])
    assert torch.equal(seen[:, :, 128:130], keys[:, :, 128:])  # the latest are exact
    assert (layer.squares[0] / layer.squares[1]) ** 0.5 == pytest.approx(lost, rel=1e-3)


def test_quanto_and_the_built_in_quantizer_agree() -> None:
    pytest.importorskip("optimum.quanto")
    groups = torch.randn(50, 32)
    for ours, reference in zip(
        quantizer_for("built-in", 4)(groups, 4), quantizer_for("quanto", 4)(groups, 4), strict=True
    ):
        torch.testing.assert_close(ours.float(), reference.float(), atol=1e-4, rtol=1e-3)


def test_per_channel_scales_reduce_the_error_of_outlier_channels() -> None:
    torch.manual_seed(0)
    keys = torch.randn(1, 2, 64, 16)
    keys[..., 3] *= 40
    lost = {}
    for axis in ("channel", "token"):
        layer = QuantizedLayer(QuantizationSettings(axis_key=axis))
        layer.update(keys, keys)
        lost[axis] = (layer.stores[0].read(torch.float32) - keys)[..., :3].norm().item()
    assert lost["channel"] * 5 < lost["token"]


@pytest.mark.parametrize("options", [{}, {"nbits": 2}, {"engine": "fp8"}, {"residual_length": 32, "q_group_size": 16}])
@pytest.mark.parametrize("kind", ["llama", "t5"])
@pytest.mark.parametrize("rows", every(2, [2, 1]))
def test_predicted_bytes_equal_measured_bytes(options: dict[str, Any], kind: str, rows: int) -> None:
    model, backend = tiny.shared(kind), core.caches.registry["quantized"]
    more = {"do_sample": True, "num_return_sequences": 2} if rows > 1 else {}
    config = GenerationConfig(max_new_tokens=90, min_new_tokens=90, **more)
    request = core.Request(tiny.prompt(70), config, cache="quantized", cache_options=options)
    for event in core.run(model, request).events:
        if isinstance(event, CacheMeasured):
            predicted = backend.predict(model, event.tokens, rows, {**options, "source_length": 70})
            assert event.bytes == predicted == sum(part for *_, part in event.parts)


def test_quantized_size_at_1024_tokens_relative_to_float16() -> None:
    model = tiny.make("llama", hidden_size=128, head_dim=32)
    half = 2 * 4 * 2 * 1024 * 32 * 2
    assert size(model, 1024, {"nbits": 4}) / half <= 0.33
    assert size(model, 1024, {"nbits": 2}) / half <= 0.21
    model.model.to(torch.float16)
    cache = core.caches.registry["quantized"].build(model, 1024, {"nbits": 4})
    states = torch.randn(1, 2, 1024, 32, dtype=torch.float16)
    for layer in cache.layers:
        layer.update(states, states)
    assert core.caches.registry["quantized"].measure(cache).bytes == size(model, 1024, {"nbits": 4})


def test_measurement_lists_keys_values_scales_and_residual() -> None:
    config = GenerationConfig(max_new_tokens=10, min_new_tokens=10)
    request = core.Request(tiny.prompt(100), config, cache="quantized", cache_options={"nbits": 2})
    last = [event for event in core.run(tiny.shared("llama"), request).events if isinstance(event, CacheMeasured)][-1]
    assert {part for _, part, _ in last.parts} == {"keys", "values", "scales", "residual"}
    assert last.error is not None
    assert 0.05 < last.error < LARGEST_ERROR[2]


def test_eight_bit_cache_generates_the_text_of_the_dynamic_cache() -> None:
    model = tiny.make("llama", scale=3.0)
    config = GenerationConfig(max_new_tokens=40, min_new_tokens=40)
    texts = [
        core.run(model, core.Request(tiny.prompt(90), config, cache=cache, cache_options=options)).sequences
        for cache, options in (("quantized", {"nbits": 8}), ("dynamic", {}))
    ]
    assert texts[0] == texts[1]


def test_reorder_does_not_quantize_again() -> None:
    layer, keys = filled(QuantizationSettings(), 70, rows=2)
    before = layer.stores[0].read(torch.float32)
    layer.reorder_cache(torch.tensor([1, 1, 0]))
    assert torch.equal(layer.stores[0].read(torch.float32), before[[1, 1, 0]])
    assert torch.equal(layer.keys, keys[[1, 1, 0], :, 64:])


def test_copy_is_independent_of_the_original() -> None:
    layer, keys = filled(QuantizationSettings(), 70)
    twin = layer.clone()
    layer.update(keys, keys)
    assert layer.get_seq_length() == 140
    assert twin.get_seq_length() == 70
    assert torch.equal(twin.keys, keys[:, :, 64:])


def test_more_bits_lose_less() -> None:
    _, keys = filled(QuantizationSettings(), 64)

    def lost(bits: int) -> float:
        recipe = replace(QuantizationSettings(), bits=bits)
        stored = QuantizedStorage(recipe, recipe.axis_key, recipe.create_quantizer()).append(keys)
        return float((stored - keys).norm() / keys.norm())

    losses = [lost(bits) for bits in (1, 2, 4, 8)]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 10 * losses[-1] > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "quanto", "nbits": 8}, "does not support 8 bits"),
        ({"q_group_size": 24}, "cannot be divided into groups"),
    ],
)
def test_invalid_options_raise_cache_error(options: dict[str, Any], words: str) -> None:
    if options.get("engine") and not is_installed(options["engine"]):
        pytest.skip("quanto is an optional library")
    with pytest.raises(CacheError, match=words):
        core.run(tiny.shared("llama"), core.Request([5], cache="quantized", cache_options=options))


def test_missing_quantization_library_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CacheError, match=r"pip install hqq"):
        replace(QuantizationSettings(), engine="hqq").create_quantizer()


def test_unsupported_reason_names_what_the_cache_cannot_do() -> None:
    backend = core.caches.registry["quantized"]
    assert "drop its last tokens" in (
        backend.unsupported_reason(tiny.shared("llama"), frozenset({"truncate", "drafts"})) or ""
    )
    assert "sliding attention" in (backend.unsupported_reason(tiny.shared("mistral")) or "")
    assert backend.unsupported_reason(tiny.shared("llama"), frozenset({"reorder"})) is None
