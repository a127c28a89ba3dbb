"""The sink cache against StreamingLLM written out token by token with no cache class at all."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.sink import KeyRotation, SinkLayer
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.errors import CacheError
from decodescope.core.events import CacheMeasured, Prefilled, SequenceFinished
from tests.core import tiny

WINDOW, SINKS = 10, 2
OPTIONS = {"window_length": WINDOW, "num_sink_tokens": SINKS}


def rotated(vectors: torch.Tensor, width: int, base: float = 10000.0) -> torch.Tensor:
    """RoPE for vectors [H, T, width] at places 0 … T − 1, by its definition (Su et al. 2021)."""
    place = torch.arange(vectors.shape[1])[:, None]
    angle = place / base ** (torch.arange(0, width, 2) / width)
    cosine, sine = angle.cos(), angle.sin()
    first, second = vectors[..., : width // 2], vectors[..., width // 2 :]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class Streaming:
    """A tiny Llama read one token at a time; per layer a list of (unturned key, value), cut to sinks and latest."""

    def __init__(self, model: core.LoadedModel) -> None:
        self.net, self.kept = model.model, [[] for _ in range(model.layers)]

    def read(self, token: int) -> torch.Tensor:
        net = self.net.model
        state = net.embed_tokens.weight[token]
        for layer, stored in zip(net.layers, self.kept, strict=True):
            attention = layer.self_attn
            x = layer.input_layernorm(state)
            query = attention.q_proj(x).view(4, 1, 8)
            stored.append((attention.k_proj(x).view(2, 8), attention.v_proj(x).view(2, 8)))
            if len(stored) > WINDOW:
                del stored[SINKS]
            place = len(stored) - 1
            keys = rotated(torch.stack([key for key, _ in stored], 1), 8).repeat_interleave(2, 0)
            values = torch.stack([value for _, value in stored], 1).repeat_interleave(2, 0)
            query = rotated(query.expand(4, place + 1, 8), 8)[:, -1:]
            heads = scaled_dot_product_attention(query[None], keys[None], values[None])[0]
            state = state + attention.o_proj(heads.reshape(-1))
            state = state + layer.mlp(layer.post_attention_layernorm(state))
        return self.net.lm_head(net.norm(state))


def test_sink_cache_equals_streaming_llm() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt(40)
    backend = core.caches.registry["sink"]
    cache, naive = backend.build(model, 0, OPTIONS), Streaming(model)
    with torch.inference_mode():
        for number, token in enumerate(ids):
            logits = model.model(torch.tensor([[token]]), **{model.cache_name: cache}).logits[0, -1]
            torch.testing.assert_close(logits, naive.read(token), rtol=1e-3, atol=1e-3)
            assert backend.measure(cache).tokens == min(number + 1, WINDOW - 1)


def test_fused_pass_with_sink_cache_equals_the_module() -> None:
    config = GenerationConfig(max_new_tokens=60, min_new_tokens=60)
    request = core.Request(tiny.prompt(), config, cache="sink", cache_options=OPTIONS)
    hooked = tiny.make("llama")
    hooked.model.register_forward_pre_hook(lambda module, args: None)  # the lean pass leaves such modules alone
    lean, module = core.run(tiny.shared("llama"), request), core.run(hooked, request)
    assert get_fused_decoder(tiny.shared("llama")) is not None
    assert get_fused_decoder(hooked) is None
    assert lean.sequences == module.sequences


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_sink_cache_within_the_window_equals_dynamic(kind: str) -> None:
    config = GenerationConfig(max_new_tokens=30, min_new_tokens=30)
    written = [
        core.run(tiny.shared(kind), core.Request(tiny.prompt(), config, cache=cache)).sequences
        for cache in ("sink", "dynamic")
    ]
    assert written[0] == written[1]


def test_text_beyond_the_context_keeps_memory_constant() -> None:
    model = tiny.shared("llama")
    config = GenerationConfig(max_new_tokens=600, min_new_tokens=600)
    events = core.run(model, core.Request(tiny.prompt(), config, cache="sink", cache_options=OPTIONS)).events
    measured = [event for event in events if isinstance(event, CacheMeasured)]
    ended = next(event for event in events if isinstance(event, SequenceFinished))
    expected = core.caches.registry["sink"].predict(model, 600, 1, OPTIONS)
    assert {event.bytes for event in measured} == {expected}
    assert ended.reason == "length"
    seen = 12 + 600 - 1  # the last token is not read
    assert measured[-1].held == ((0, SINKS), (seen - (WINDOW - 1 - SINKS), seen))


def test_long_prompt_is_prefilled_in_chunks_within_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    model, looked_at = tiny.shared("llama"), list[int]()
    plain = SinkLayer.update

    def update(layer: SinkLayer, *args: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = plain(layer, *args)
        looked_at.append(seen[0].shape[-2])
        return seen

    monkeypatch.setattr(SinkLayer, "update", update)
    request = core.Request(
        tiny.prompt(700), GenerationConfig(max_new_tokens=5, min_new_tokens=5), cache="sink", cache_options=OPTIONS
    )
    result = core.run(model, request)
    assert next(event for event in result.events if isinstance(event, Prefilled)).tokens == 700
    assert len(result.sequences[0]) == 5
    assert max(looked_at) == WINDOW
    half = (WINDOW - SINKS) // 2
    assert result.metrics.target_passes == 1 + math.ceil((700 - WINDOW) / half) + 4


@pytest.mark.parametrize(
    "settings", [{"do_sample": True, "num_return_sequences": 3}, {"penalty_alpha": 0.6, "top_k": 3}]
)
def test_several_rows_have_the_predicted_size(settings: dict[str, object]) -> None:
    config = GenerationConfig(max_new_tokens=30, min_new_tokens=30, **settings)
    result = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config, cache="sink", cache_options=OPTIONS))
    rows = max(int(settings.get("num_return_sequences", 1)), int(settings.get("top_k", 1)))
    last = [event for event in result.events if isinstance(event, CacheMeasured)][-1]
    assert last.bytes == core.caches.registry["sink"].predict(tiny.shared("llama"), 99, rows, OPTIONS)


def test_unrotate_inverts_rotate_with_yarn_scaling() -> None:
    model = tiny.make("llama", rope_parameters={
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64,
    })  # fmt: skip
    rotary, keys = KeyRotation(model), torch.randn(1, 2, 9, 8)
    assert not torch.allclose(rotary.rotate(keys, 5), keys)
    torch.testing.assert_close(rotary.unrotate(rotary.rotate(keys, 5), 5), keys)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window_length": 5, "num_sink_tokens": 4}, "too small for"),
        ({"window_length": 257}, "longer than the model's"),
    ],
)
def test_invalid_window_options_raise_cache_error(options: dict[str, int], words: str) -> None:
    with pytest.raises(CacheError, match=words):
        core.run(tiny.shared("llama"), core.Request([5], cache="sink", cache_options=options))


@pytest.mark.parametrize(
    ("kind", "words"),
    [("gpt2", "RoPE"), ("mistral", "full attention in every layer"), ("t5", "encoder–decoder"), ("mamba", "recurrent")],
)
def test_unsupported_models_have_a_reason(kind: str, words: str) -> None:
    assert words in (core.caches.registry["sink"].unsupported_reason(tiny.shared(kind)) or "")


@pytest.mark.parametrize(
    ("strategy", "words"),
    [("prompt_lookup", "cannot drop its last tokens"), ("token_tree", "cannot drop its last tokens")],
)
def test_strategies_that_truncate_are_unsupported(strategy: str, words: str) -> None:
    needs = core.strategies.registry[strategy].needs
    assert words in (core.caches.registry["sink"].unsupported_reason(tiny.shared("llama"), needs) or "")
