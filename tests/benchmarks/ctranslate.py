"""Comparison with CTranslate2 (`pip install ctranslate2`) on SmolLM2-135M's shape: the same weights, converted by its
converter, greedy and four beams, in float32 and in 8 bits, with one thread and all cores, alternately.

Ours reports ten alternatives of each token and, of beams, each step's candidates; CTranslate2 gives the ids alone. In
8 bits ours is measured with the weights in memory (`weights="int8"`) and with the Q8_0 blocks of a GGUF file.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from decodescope import core
from tests.benchmarks.llama import random_model
from tests.core.gguf_models import tokenizer

PROMPT_TOKENS, NEW_TOKENS, BEAMS, TOP_N = 16, 64, 4, 10
_SHAPE = "SmolLM2-135M"
_SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    f"{BEAMS} beams": {"num_beams": BEAMS, "do_sample": False},
}


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Ours ÷ CTranslate2 in tokens per second of the whole call, prompt included; nothing without it."""
    if importlib.util.find_spec("ctranslate2") is None:
        print("CTranslate2 is not installed (pip install ctranslate2): nothing is compared with it.")
        return
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        saved, gguf = Path(folder) / "model", Path(folder) / "model.gguf"
        model = random_model(_SHAPE)
        model.model.save_pretrained(saved)
        tokenizer().save_pretrained(saved)
        core.save_gguf(model, gguf, "Q8_0")
        del model
        ours = {
            "float32": (core.load(saved, device="cpu", weights="float32"), "float32"),
            "int8": (core.load(saved, device="cpu", weights="int8"), "int8"),
            "Q8_0": (core.load(gguf, device="cpu"), "int8"),
        }
        for threads in sorted({1, os.cpu_count() or 1}):
            torch.set_num_threads(threads)
            peers = {name: _converted(saved, Path(folder) / name, name, threads) for name in ("float32", "int8")}
            for called, (loaded, theirs) in ours.items():
                for kind, settings in _SETTINGS.items():
                    ratio = _ratio(_own_run(loaded, settings), _peer_run(peers[theirs], settings), rounds)
                    suffix = f", {threads} thread{'s' if threads > 1 else ''}"
                    yield f"{_SHAPE} {called} ÷ CTranslate2, {kind}{suffix}", ratio


def _converted(saved: Path, folder: Path, kind: str, threads: int) -> Any:
    """Return CTranslate2's generator of a saved model, converted in `folder` once."""
    import ctranslate2

    if not folder.exists():
        ctranslate2.converters.TransformersConverter(str(saved)).convert(str(folder), quantization=kind)
    return ctranslate2.Generator(str(folder), intra_threads=threads, inter_threads=1, compute_type=kind)


def _own_run(model: core.LoadedModel, settings: dict[str, Any]) -> Callable[[], list[int]]:
    lengths = {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS}
    request = core.Request(_prompt(), {**settings, **lengths}, top_n=TOP_N)
    return lambda: core.run(model, request).sequences[0]


def _peer_run(generator: Any, settings: dict[str, Any]) -> Callable[[], list[int]]:
    tokens = tokenizer().convert_ids_to_tokens(_prompt())

    def run() -> list[int]:
        [result] = generator.generate_batch(
            [tokens],
            beam_size=settings.get("num_beams", 1),
            max_length=NEW_TOKENS,
            min_length=NEW_TOKENS,
            include_prompt_in_result=False,
        )
        return list(result.sequences_ids[0])

    return run


def _prompt() -> list[int]:
    return [100 + place * 7 % 150 for place in range(PROMPT_TOKENS)]


def _ratio(ours: Callable[[], list[int]], theirs: Callable[[], list[int]], rounds: int) -> float:
    """Return the median of their seconds ÷ our seconds; each pair of runs follows one another."""
    for run in (ours, theirs):  # warms up
        assert len(run()) == NEW_TOKENS
    ratios = []
    for number in range(rounds):
        seconds = {}
        for run in (ours, theirs) if number % 2 else (theirs, ours):
            begun = time.perf_counter()
            run()
            seconds[run] = time.perf_counter() - begun
        ratios.append(seconds[theirs] / seconds[ours])
    return statistics.median(ratios)
