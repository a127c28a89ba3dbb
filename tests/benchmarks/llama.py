"""Comparison with llama.cpp (`pip install xllamacpp`) on the shapes of models that people run: the same GGUF file read
by both, greedy, ten alternatives of each token reported, one thread and all cores, alternately.

The weights are random, with real widths, depths, heads and vocabularies; speed does not depend on their values. With
DECODESCOPE_GGUF=FILE that file is measured instead.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from decodescope import core
from tests.core.gguf_models import tokenizer
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

_COMMON: dict[str, Any] = {
    "max_position_embeddings": 2048, "bos_token_id": 256, "eos_token_id": 257, "pad_token_id": 258,
}  # fmt: skip


def _shape(
    model_type: str, width: int, wide: int, layers: int, heads: tuple[int, int], vocabulary: int, **other: Any
) -> dict[str, Any]:
    return {
        "model_type": model_type, "hidden_size": width, "intermediate_size": wide, "num_hidden_layers": layers,
        "num_attention_heads": heads[0], "num_key_value_heads": heads[1], "vocab_size": vocabulary,
        "tie_word_embeddings": True, **_COMMON, **other,
    }  # fmt: skip


SHAPES: dict[str, dict[str, Any]] = {
    "SmolLM2-135M": _shape("llama", 576, 1536, 30, (9, 3), 49152),
    "SmolLM2-360M": _shape("llama", 960, 2560, 32, (15, 5), 49152),
    "Gemma-3-270m": _shape(
        "gemma3_text", 640, 2048, 18, (4, 1), 262144, head_dim=256, query_pre_attn_scalar=256, sliding_window=512
    ),
    "Qwen2.5-0.5B": _shape("qwen2", 896, 4864, 24, (14, 2), 151936),
    "Qwen3-0.6B": _shape("qwen3", 1024, 3072, 28, (16, 8), 151936, head_dim=128),
    "Llama-3.2-1B": _shape("llama", 2048, 8192, 16, (32, 8), 128256, head_dim=64),
}
"""Config values of each model, as its config.json has them."""
FORMATS = (("F32", "auto"), ("BF16", "auto"), ("Q8_0", "auto"), ("Q4_0", "auto"), ("Q4_1", "auto"))
"""Format of the file, and the requested weights."""
PROMPT_TOKENS, NEW_TOKENS, TOP_N = 512, 48, 10
_READ_BYTES = 1 << 29


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Ours ÷ llama.cpp for decoding and for the prompt, and the share of the memory's bandwidth; nothing without it."""
    if not IS_INSTALLED:
        print("llama.cpp is not installed (pip install xllamacpp): nothing is compared with it.")
        return
    rounds = 2 if quick else 5
    if (own := os.environ.get("DECODESCOPE_GGUF")) is not None:
        yield from _compare(Path(own).stem, "", Path(own), rounds)
        return
    for name in ["SmolLM2-135M"] if quick else SHAPES:
        model = random_model(name)
        for file_format, _ in FORMATS:
            with tempfile.TemporaryDirectory() as folder:
                path = core.save_gguf(model, Path(folder) / "model.gguf", file_format)
                yield from _compare(name, f" {file_format}", path, rounds)


def random_model(name: str, **changes: Any) -> core.LoadedModel:
    """Return a model of a shape of `SHAPES`, with `changes` of its config, with random weights in float32."""
    torch.manual_seed(0)
    values = {**SHAPES[name], **changes}
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return core.wrap(network, tokenizer(), name=name)


def _compare(name: str, called: str, path: Path, rounds: int) -> Iterator[tuple[str, float]]:
    begun = time.perf_counter()
    model = core.load(path, device="cpu")
    yield f"{name}{called}: seconds to load", time.perf_counter() - begun
    for threads in sorted({1, os.cpu_count() or 1}):
        torch.set_num_threads(threads)
        decode, prompt, speeds = _speed_ratios(model, path, threads, rounds)
        suffix = f", {threads} thread{'s' if threads > 1 else ''}"
        yield f"{name}{called} ÷ llama.cpp, decode{suffix}", decode
        yield f"{name}{called} ÷ llama.cpp, prompt{suffix}", prompt
        yield f"{name}{called}: tokens/s{suffix}", statistics.median(speeds)
        if called.strip() in ("F32", ""):
            share = model.weight_bytes * max(speeds) / read_bandwidth()
            yield f"{name}{called}: share of the read bandwidth{suffix}", share


def _speed_ratios(model: core.LoadedModel, path: Path, threads: int, rounds: int) -> tuple[float, float, list[float]]:
    """Return the ratios for decoding and prompt (medians of alternating runs), and our tokens/s."""
    ids = [100 + place * 7 % 150 for place in range(PROMPT_TOKENS)]
    settings = {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS, "do_sample": False}
    decode, prompt, speeds = [], [], []
    with LlamaCppServer(path, threads, context=1024) as server:
        for number in range(rounds + 1):
            ours = core.run(model, core.Request(ids, settings, top_n=TOP_N)).metrics
            theirs = server.complete(ids, NEW_TOKENS, TOP_N)["timings"]
            assert ours.decode_tokens_per_second is not None
            assert ours.prefill_tokens_per_second is not None
            if number:  # the first round warms both up
                decode.append(ours.decode_tokens_per_second / theirs["predicted_per_second"])
                prompt.append(ours.prefill_tokens_per_second / theirs["prompt_per_second"])
                speeds.append(ours.decode_tokens_per_second)
    return statistics.median(decode), statistics.median(prompt), speeds


def read_bandwidth() -> float:
    """Return the bytes per second that torch's current number of threads read from memory: the best of ten sums."""
    values = torch.ones(_READ_BYTES // 4)
    best = float("inf")
    for _ in range(10):
        begun = time.perf_counter()
        values.sum()
        best = min(best, time.perf_counter() - begun)
    return _READ_BYTES / best
