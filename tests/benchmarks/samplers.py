"""Cost of each newer sampler: tokens per second with it ÷ without it, in addition to temperature and top-p."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from decodescope import core
from tests.benchmarks.timing import speed_ratio

PROMPT = "Once upon a time, there was a little fox named Mia. She lived in a den under the hill."
SAMPLERS: dict[str, dict[str, Any]] = {
    "DRY": {"dry_multiplier": 0.8},
    "XTC": {"xtc_probability": 0.5},
    "top-nσ": {"top_n_sigma": 1.5},
    "mirostat": {"mirostat_tau": 2.0},
    "dynamic temperature": {"dynatemp_high": 1.2},
}


def written(model: core.LoadedModel, ids: list[int], tokens: int, options: dict[str, Any]) -> Callable[[], object]:
    """Run the given number of tokens with these options and tracing."""
    config = {"max_new_tokens": tokens, "min_new_tokens": tokens, "temperature": 0.8, "top_p": 0.95, "top_k": 0}
    return partial(core.run, model, core.Request(ids, config, "sampling", options, seed=1))


def measure(quick: bool = False) -> Iterator[tuple[str, float]]:
    """One ratio a sampler, each in turn with the run without it; higher is better."""
    torch.set_num_threads(1)  # as the program does for models this small
    model = core.load("storyteller")
    ids = model.tokenizer(PROMPT)["input_ids"]
    tokens, rounds = (60, 5) if quick else (150, 15)
    off = written(model, ids, tokens, {})
    for name, options in SAMPLERS.items():
        yield f"{name} on ÷ off", speed_ratio(written(model, ids, tokens, options), off, rounds)
