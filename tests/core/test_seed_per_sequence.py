"""Sequences with seeds of their own in one batch: each equals a separate run."""

from __future__ import annotations

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.token_loop import MultinomialPicker, SeededMultinomialPicker
from tests.core import tiny

SETTINGS = {"do_sample": True, "max_new_tokens": 24, "top_k": 0, "temperature": 1.3}
TEXTS, SEED = 6, 100


def batch(model: core.LoadedModel, **more: object) -> core.Result:
    config = {**SETTINGS, "num_return_sequences": TEXTS, **more}
    return core.run(model, core.Request(tiny.prompt(), config, "sampling", {"seed_each": True}, seed=SEED))


def single(model: core.LoadedModel, seed: int) -> list[int]:
    return core.run(model, core.Request(tiny.prompt(), SETTINGS, "sampling", seed=seed)).sequences[0]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mamba", "t5"])
def test_batched_texts_equal_single_runs(kind: str) -> None:
    """In float32; that a batch's last bits flip no draw here is seen, not promised."""
    model = tiny.shared(kind)
    assert batch(model).sequences == [single(model, SEED + n) for n in range(TEXTS)]


def test_shared_seed_gives_other_texts() -> None:
    model = tiny.shared("llama")
    config = {**SETTINGS, "num_return_sequences": TEXTS}
    together = core.run(model, core.Request(tiny.prompt(), config, "sampling", seed=SEED)).sequences
    assert together != batch(model).sequences


def test_texts_are_independent_of_the_batch_size() -> None:
    model = tiny.shared("llama")
    whole = batch(model).sequences
    assert batch(model).sequences == whole
    assert batch(model, num_return_sequences=TEXTS - 2).sequences == whole[: TEXTS - 2]


def test_draws_of_a_batch_equal_those_of_single_generators() -> None:
    scores = torch.randn(32, 500, generator=torch.Generator().manual_seed(1))
    together = SeededMultinomialPicker(7, 32, torch.device("cpu"))
    alone = [torch.Generator().manual_seed(7 + row) for row in range(32)]
    for _ in range(20):
        drawn = together.pick(scores, torch.Generator())
        assert drawn.tolist() == [int(MultinomialPicker().pick(scores[n : n + 1], alone[n])) for n in range(32)]
        scores = scores.roll(1, 1)
