"""Beside llama.cpp, where its Python package is installed: the same weights, one thread, greedy, in one sitting.

`pip install llama-cpp-python gguf` builds it (some ten minutes of a processor); without it, this says so and measures
nothing.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

import core
from tests.benchmarks.decode import PROMPT
from tests.benchmarks.timing import speed_ratio

GGUF = "TOKENSCOPE_GGUF"
"""Names a folder with storyteller-f32.gguf and storyteller-q8_0.gguf, as llama.cpp's converter writes them."""


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """Ours ÷ llama.cpp, in float32 and in eight bits; nothing where it is not installed."""
    if importlib.util.find_spec("llama_cpp") is None:
        print("llama.cpp is not installed (pip install llama-cpp-python): nothing is measured beside it.")
        return
    folder = os.environ.get(GGUF)
    if folder is None:
        print(f"Set {GGUF} to a folder with storyteller-f32.gguf and storyteller-q8_0.gguf.")
        return
    torch.set_num_threads(1)
    for kind, file in (("float32", "storyteller-f32.gguf"), ("int8", "storyteller-q8_0.gguf")):
        yield f"storyteller {kind} ÷ llama.cpp, 1 thread", _ratio(Path(folder) / file, kind, 60, 3 if quick else 7)


def _ratio(file: Path, kind: str, tokens: int, rounds: int) -> float:
    theirs: Any = importlib.import_module("llama_cpp").Llama(str(file), n_threads=1, n_ctx=512, verbose=False)
    model = core.load("storyteller", weights=kind)
    ids = model.tokenizer(PROMPT)["input_ids"]
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
    return speed_ratio(
        lambda: core.run(model, core.Request(ids, config)),
        lambda: theirs(PROMPT, max_tokens=tokens, temperature=0.0),
        rounds,
    )
