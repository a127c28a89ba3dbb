"""Many seeded samples in one batch, against separate runs."""

from __future__ import annotations

import torch

from decodescope import core
from tests.benchmarks.timing import speed_ratio

PROMPT = "Once upon a time"
TEXTS = 64


def measure(quick: bool = False) -> dict[str, float]:
    """Tokens/s of 64 texts at once ÷ those of 64 runs with the same seeds, which write the same texts."""
    torch.set_num_threads(1)  # as the program does for models this small
    model = core.load("storyteller")
    settings = {"do_sample": True, "max_new_tokens": 16 if quick else 48}
    together = {**settings, "num_return_sequences": TEXTS}

    def all_samples() -> object:
        return core.run(model, core.Request(PROMPT, together, "sampling", {"seed_each": True}))

    def singles() -> object:
        return [core.run(model, core.Request(PROMPT, settings, "sampling", seed=seed)) for seed in range(TEXTS)]

    return {f"{TEXTS} samples in one run ÷ {TEXTS} single runs": speed_ratio(all_samples, singles, 1 if quick else 3)}
