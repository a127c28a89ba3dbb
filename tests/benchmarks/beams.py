"""Beam search with five beams and full tracing, against transformers' generate; size of its events."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import torch
from transformers import GenerationConfig

from decodescope import core
from tests.benchmarks.decode import PROMPT, random_llama
from tests.benchmarks.timing import speed_ratio


def beam_ratio(model: core.LoadedModel, ids: list[int], tokens: int, rounds: int) -> float:
    """Tokens/s with five beams and tracing on ÷ generate's, for the same texts."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens, num_beams=5, do_sample=False)
    tensor = torch.tensor([ids])

    def ours() -> Any:
        return core.run(model, core.Request(ids, config, top_n=10))

    def generate() -> Any:
        return model.model.generate(tensor, generation_config=config, attention_mask=torch.ones_like(tensor))

    return speed_ratio(ours, generate, rounds)


def event_megabytes(model: core.LoadedModel, ids: list[int], beams: int, steps: int) -> float:
    """Memory that all events of a run hold, in MB."""
    config = GenerationConfig(max_new_tokens=steps, min_new_tokens=steps, num_beams=beams, do_sample=False)
    core.run(model, core.Request(ids, GenerationConfig(max_new_tokens=2, num_beams=beams)))  # fill lasting caches
    gc.collect()
    tracemalloc.start()
    events = core.run(model, core.Request(ids, config)).events
    gc.collect()
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(events) > steps
    return held / 1e6


def measure(quick: bool = False) -> dict[str, float]:
    """All figures of this module."""
    torch.set_num_threads(2)
    story = core.load("storyteller")
    ids = story.tokenizer(PROMPT)["input_ids"]
    figures = {
        "beam search ÷ generate, storyteller": beam_ratio(story, ids, 30 if quick else 60, 3 if quick else 7),
        "events of 16 beams, 200 steps (MB)": event_megabytes(story, ids, 16, 40 if quick else 200),
    }
    if not quick:
        figures["beam search ÷ generate, 97 M Llama"] = beam_ratio(random_llama(), list(range(5, 25)), 12, 3)
    return figures
