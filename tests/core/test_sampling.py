"""Sampling has the exact distribution, and equal texts for equal seeds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from scipy.stats import chisquare
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation import logits_process as lp

from decodescope import core
from decodescope.core.events import TokenChosen
from tests.core import tiny


@pytest.fixture(scope="module")
def six_token_model() -> core.LoadedModel:
    """A model with a vocabulary of 6 and uneven probabilities."""
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=6, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    torch.nn.init.normal_(network.lm_head.weight, std=0.35)
    return core.wrap(network)


def exact(model: core.LoadedModel, ids: list[int], warpers: list[Any]) -> torch.Tensor:
    """The distribution of the next token, computed without the core."""
    with torch.no_grad():
        scores = model.model(torch.tensor([ids])).logits[:, -1].double()
    for warper in warpers:
        scores = warper(torch.tensor([ids]), scores)
    return scores.softmax(-1)[0]


CASES: list[tuple[dict[str, Any], list[Any]]] = [
    ({"top_k": 0}, []),
    ({"top_k": 0, "temperature": 0.5}, [lp.TemperatureLogitsWarper(0.5)]),
    ({"top_k": 3, "temperature": 1.7}, [lp.TemperatureLogitsWarper(1.7), lp.TopKLogitsWarper(3)]),
    ({"top_k": 0, "top_p": 0.8}, [lp.TopPLogitsWarper(0.8)]),
]


@pytest.mark.every(2)
@pytest.mark.parametrize(("settings", "warpers"), CASES)
def test_one_sampled_token_follows_the_distribution(
    six_token_model: core.LoadedModel, settings: Any, warpers: list[Any]
) -> None:
    ids, count = [1, 4, 2], 20_000
    config = GenerationConfig(do_sample=True, max_new_tokens=1, num_return_sequences=count, **settings)
    result = core.run(six_token_model, core.Request(ids, config, top_n=0, seed=11))
    seen = Counter(row[0] for row in result.sequences)
    expected = exact(six_token_model, ids, warpers)
    assert set(seen) <= set(expected.nonzero().flatten().tolist())
    alive = [token for token in range(6) if expected[token] > 0]
    p = chisquare([seen[token] for token in alive], [float(expected[token]) * count for token in alive]).pvalue
    assert p > 1e-4


def test_two_sampled_tokens_follow_the_joint_distribution(six_token_model: core.LoadedModel) -> None:
    ids, count = [1, 4, 2], 20_000
    config = GenerationConfig(do_sample=True, max_new_tokens=2, num_return_sequences=count, top_k=0)
    seen = Counter(
        tuple(row) for row in core.run(six_token_model, core.Request(ids, config, top_n=0, seed=12)).sequences
    )
    first = exact(six_token_model, ids, [])
    joint = {(a, b): float(first[a] * exact(six_token_model, [*ids, a], [])[b]) for a in range(6) for b in range(6)}
    p = chisquare([seen[pair] for pair in joint], [share * count for share in joint.values()]).pvalue
    assert p > 1e-4


def test_same_seed_gives_the_same_tokens() -> None:
    model = tiny.shared("llama")
    request = core.Request(tiny.prompt(), GenerationConfig(do_sample=True, max_new_tokens=20), seed=42)
    first = core.run(model, request)
    torch.manual_seed(123)
    torch.rand(7)
    again = core.run(model, request)
    assert first.sequences == again.sequences
    other = core.Request(tiny.prompt(), GenerationConfig(do_sample=True, max_new_tokens=20), seed=43)
    assert core.run(model, other).sequences != first.sequences


def test_tracing_does_not_change_the_draws() -> None:
    model, config = tiny.shared("gpt2"), GenerationConfig(do_sample=True, max_new_tokens=20)
    runs = [core.run(model, core.Request(tiny.prompt(), config, top_n=n, seed=4)).sequences for n in (0, 1, 10, 61, 99)]
    assert all(run == runs[0] for run in runs)


def test_sampling_leaves_the_global_generator_unchanged() -> None:
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    config = GenerationConfig(do_sample=True, max_new_tokens=5)
    core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("kind", ["llama", "gemma3", "t5", "mamba"])
def test_several_sequences_end_one_by_one(kind: str) -> None:
    model = tiny.shared(kind)
    config = GenerationConfig(do_sample=True, max_new_tokens=30, num_return_sequences=5, eos_token_id=[2, 7, 9, 30])
    result = core.run(model, core.Request(tiny.prompt(), config, seed=1))
    assert len(result.sequences) == 5
    assert len({len(row) for row in result.sequences}) > 1
    for number, row in enumerate(result.sequences):
        mine = [e.id for e in result.events if isinstance(e, TokenChosen) and e.sequence == number]
        assert mine == row
        assert not set(row[:-1]) & {2, 7, 9, 30}
