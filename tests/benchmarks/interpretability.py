"""Logit lens of a text against a plain pass, and batched occlusion."""

from __future__ import annotations

import math

import torch

from decodescope import core
from decodescope.core.interpretability.occlusion import split_units
from tests.benchmarks.timing import speed_ratio

PROMPT = "Once upon a time, there was a little fox named Mia."
TOKENS, WORDS = 120, 60


def lens_cost(model: core.LoadedModel, ids: list[int], rounds: int) -> float:
    """Time of all layers of a text's tokens ÷ that of the module's own pass over it."""
    row = torch.tensor([ids[:-1]])

    @torch.inference_mode()
    def plain() -> object:
        return model.model(input_ids=row, use_cache=False)

    return speed_ratio(plain, lambda: list(core.lens_text(model, ids, 1)), rounds)


def occlusion_gain(model: core.LoadedModel, ids: list[int], rounds: int) -> float:
    """Time of one pass of the module for each word left out ÷ that of `core.occlude`; both find the same."""
    step = len(ids) - 1
    words = split_units(model, ids[:step], "word")

    @torch.inference_mode()
    def held(before: list[int]) -> float:
        logits = model.model(input_ids=torch.tensor([before]), use_cache=False).logits[0, -1]
        return float(logits.log_softmax(-1)[ids[step]])

    def one_by_one() -> list[float]:
        whole = held(ids[:step])
        return [whole - held(ids[:start] + ids[stop:step]) for start, stop in words]

    def batched() -> list[float]:
        return [effect.effect for effect in core.occlude(model, ids, step, unit="word")]

    assert all(math.isclose(a, b, abs_tol=1e-3) for a, b in zip(one_by_one(), batched(), strict=True))
    return speed_ratio(batched, one_by_one, rounds)


def measure(quick: bool = False) -> dict[str, float]:
    """Both ratios."""
    torch.set_num_threads(1)  # as the program does for models this small
    model = core.load("storyteller")
    ids = core.encode(model, PROMPT)
    ids += core.run(model, core.Request(ids, {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS})).sequences[0]
    ends = [span.stop for span in split_units(model, ids, "word")]
    rounds = 3 if quick else 7
    return {
        f"lens of {TOKENS} tokens ÷ a pass": lens_cost(model, ids[: TOKENS + 1], rounds),
        f"{WORDS} words left out in batches ÷ one by one": occlusion_gain(model, ids[: ends[WORDS - 1] + 1], rounds),
    }
