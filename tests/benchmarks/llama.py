"""Comparison with llama.cpp, if its Python package is installed: same weights, one thread, greedy, interleaved.

`pip install llama-cpp-python gguf` builds it (some ten minutes of a processor); without it, this says so and measures
nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

import core
from tests import gguf_files
from tests.benchmarks.decode import PROMPT, random_llama
from tests.benchmarks.timing import speed_ratio

_KINDS: tuple[tuple[str, gguf_files.Kind], ...] = (("float32", "f32"), ("int8", "q8_0"))


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Ours, traced, ÷ llama.cpp, in float32 and in eight bits; nothing where it is not installed."""
    if not all(map(importlib.util.find_spec, ("llama_cpp", "gguf"))):
        print("llama.cpp is not installed (pip install llama-cpp-python gguf): nothing is measured beside it.")
        return
    torch.set_num_threads(1)
    rounds = 3 if quick else 7
    story = core.load("storyteller").tokenizer(PROMPT)["input_ids"]
    yield from _beside("storyteller", "storyteller", story, 60, rounds)
    for millions in (97, 400):
        with tempfile.TemporaryDirectory() as folder:
            random_llama(millions).model.save_pretrained(folder)
            yield from _beside(folder, f"{millions} M Llama", list(range(5, 25)), 24, rounds)


def _beside(model: str, called: str, ids: list[int], tokens: int, rounds: int) -> Iterator[tuple[str, float]]:
    """A model in each kind; of llama.cpp's files no more than one is there at a time."""
    for kind, reference in _KINDS:
        with tempfile.TemporaryDirectory() as folder:
            file = gguf_files.write(core.load(model, weights="float32"), Path(folder) / f"{reference}.gguf", reference)
            ratio = _ratio(core.load(model, weights=kind), file, ids, tokens, rounds)
        yield f"{called} {kind} ÷ llama.cpp, 1 thread", ratio


def _ratio(model: core.LoadedModel, file: Path, ids: list[int], tokens: int, rounds: int) -> float:
    reference: Any = importlib.import_module("llama_cpp").Llama(
        str(file), n_threads=1, n_threads_batch=1, n_ctx=512, verbose=False
    )
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)

    def write() -> list[int]:
        reference.reset()  # it would keep the prompt of the run before
        return list(itertools.islice(reference.generate(ids, temp=0.0, repeat_penalty=1.0), tokens))

    ratio = speed_ratio(lambda: core.run(model, core.Request(ids, config)), write, rounds)
    reference.close()
    return ratio
