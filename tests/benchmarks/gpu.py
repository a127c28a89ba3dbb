"""Decoding on a graphics card, against its memory bandwidth and transformers' generate.

A token reads all weights once, so the bandwidth of a copy limits the speed. Published shares of that limit: gpt-fast
0.69 (A100, 7 B), a hand-written kernel 0.78 (H100, 1 B), vLLM and SGLang up to 0.50 there. Without a card, the same
code measures a tiny model on the CPU; those figures only show that it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from decodescope import core
from decodescope.core.system.gpu import synchronize
from tests.benchmarks.timing import speed_ratio


class LlamaShape(NamedTuple):
    """Sizes of a random Llama."""

    width: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int


CARD_SHAPES = {
    "1 B": LlamaShape(2048, 8192, 16, 32, 8, 128_256),
    "8 B": LlamaShape(4096, 14_336, 32, 32, 8, 128_256),
}  # fmt: skip
CPU_SHAPES = {"tiny": LlamaShape(64, 128, 4, 4, 2, 512)}
_BEAMS = 4


def random_llama(shape: LlamaShape, device: torch.device) -> core.LoadedModel:
    """Create a random model on a device, in bfloat16 on a card. Its upper layers change little, so that its lower ones
    are a draft model that often agrees.
    """
    config = LlamaConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.width, intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        max_position_embeddings=2048, tie_word_embeddings=False, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    with torch.device(device):
        network = LlamaForCausalLM(config)
    network.to(torch.float32 if device.type == "cpu" else torch.bfloat16)
    with torch.no_grad():
        for layer in network.model.layers[_draft_layers(shape) :]:
            layer.self_attn.o_proj.weight.mul_(0.05)
            layer.mlp.down_proj.weight.mul_(0.05)
    return core.wrap(network, name="random-llama")


def copy_bandwidth(device: torch.device, size: int) -> float:
    """Return the bytes per second that a copy of `size` bytes reads and writes: the best of ten."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(10):
        synchronize(device)
        begun = time.perf_counter()
        target.copy_(source)
        synchronize(device)
        best = min(best, time.perf_counter() - begun)
    return 2 * size / best


def tokens_per_second(model: core.LoadedModel, ids: list[int], tokens: int, rounds: int) -> float:
    """Return the decoding speed of traced greedy runs, without the prompt and the first token: the best of all."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    metrics = [core.run(model, core.Request(ids, config)).metrics for _ in range(rounds)]
    return max(found.decode_tokens_per_second or 0.0 for found in metrics)


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Yield all figures, on a card if there is one."""
    yield from measure_on(torch.device("cuda" if torch.cuda.is_available() else "cpu"), quick)


def measure_on(device: torch.device, quick: bool) -> Iterator[tuple[str, float]]:
    """Yield all figures of a device."""
    on_card = device.type != "cpu"
    bandwidth = copy_bandwidth(device, 2**30 if on_card else 2**24)
    yield f"copy bandwidth, {device.type} (GB/s)", bandwidth / 1e9
    tokens, rounds = (64, 3) if quick and on_card else (256, 7) if on_card else (12, 1)
    for name, shape in (CARD_SHAPES if on_card else CPU_SHAPES).items():
        model, ids = random_llama(shape, device), list(range(5, 25))
        speed = tokens_per_second(model, ids, tokens, rounds + 1)
        yield f"decode ÷ bandwidth, {name}, {device.type}", speed * model.weight_bytes / bandwidth
        for what, ratio in _ratios(model, shape, ids, tokens, rounds):
            yield f"{what}, {name}, {device.type}", ratio


def _draft_layers(shape: LlamaShape) -> int:
    return max(1, shape.layers // 4)


def _ratios(
    model: core.LoadedModel, shape: LlamaShape, ids: list[int], tokens: int, rounds: int
) -> Iterator[tuple[str, float]]:  # fmt: skip
    """Yield speed ratios of the same work."""

    def run(top_n: int = 10, **settings: Any) -> Callable[[], object]:
        config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, **settings)
        return lambda: core.run(model, core.Request(ids, config, top_n=top_n))

    def generate(**settings: Any) -> Callable[[], object]:
        config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, **settings)
        tensor = torch.tensor([ids], device=model.device)
        mask = torch.ones_like(tensor)
        return lambda: model.model.generate(tensor, generation_config=config, attention_mask=mask)

    yield "decode ÷ generate", speed_ratio(run(), generate(), rounds)
    yield "tracing on ÷ off", speed_ratio(run(), run(top_n=0), rounds)
    yield "early exit ÷ greedy", speed_ratio(run(assistant_early_exit=_draft_layers(shape)), run(), rounds)
    yield f"{_BEAMS} beams ÷ generate", speed_ratio(run(num_beams=_BEAMS), generate(num_beams=_BEAMS), rounds)
