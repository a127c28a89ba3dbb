"""The frequency and presence penalties of OpenAI's API, against its formula computed token by token."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.processor_pipeline import build_pipeline
from decodescope.core.errors import ParameterError
from decodescope.core.processors import Context, registry
from decodescope.core.strategies import registry as strategies
from tests.core import tiny

PENALTIES = ("frequency_penalty", "presence_penalty")


def pipeline(start: int, **settings: Any) -> Any:
    ids, eos = torch.tensor([[5, 6]]), torch.tensor([2])
    made = Context(tiny.shared("llama"), settings, start, 40, ids, eos, 1, torch.zeros)
    return build_pipeline(made)


def expected(scores: torch.Tensor, new: list[list[int]], frequency: float, presence: float) -> torch.Tensor:
    """μ[j] − c[j] · α_frequency − [c[j] > 0] · α_presence, one number at a time."""
    found = scores.clone()
    for row, tokens in enumerate(new):
        for token in set(tokens):
            count = tokens.count(token)
            found[row, token] -= count * frequency + (presence if count else 0.0)
    return found


@pytest.mark.parametrize(("frequency", "presence"), [(0.5, 0.0), (0.0, 0.7), (1.25, -0.5), (-2.0, 2.0)])
def test_scores_equal_the_formula_of_openai(frequency: float, presence: float) -> None:
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(3, 12, generator=generator)
    scores[1, 3] = -torch.inf
    ids = torch.randint(0, 12, (3, 20), generator=generator)
    process = pipeline(7, frequency_penalty=frequency, presence_penalty=presence)
    before = scores.clone()
    found = process(ids, scores)
    assert torch.allclose(found, expected(scores, ids[:, 7:].tolist(), frequency, presence), atol=1e-5)
    assert torch.equal(scores, before), "the scores of the model are not modified"
    assert len(process.stages) == (frequency != 0) + (presence != 0)


@pytest.mark.parametrize("name", PENALTIES)
def test_tokens_of_the_prompt_and_tokens_without_a_score_do_not_count(name: str) -> None:
    process, scores = pipeline(4, **{name: 1.0}), torch.zeros(1, 6)
    assert torch.equal(process(torch.tensor([[1, 2, 3, 3]]), scores), scores)
    assert process(torch.tensor([[1, 2, 3, 3, 5, 900]]), scores).tolist() == [[0, 0, 0, 0, 0, -1]]


def test_penalties_come_after_biases_and_before_the_temperature() -> None:
    order = list(registry)
    places = [order.index(name) for name in ("sequence_bias", "repetition_penalty", *PENALTIES, "temperature")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", PENALTIES)
def test_greedy_text_follows_the_penalized_scores_of_each_step(name: str) -> None:
    model = tiny.shared("llama")
    prompt = [7, 9, 7]
    found = core.run(model, core.Request(prompt, {"max_new_tokens": 12}, strategy="greedy", options={name: 1.5}))
    tokens = list(prompt)
    for _ in range(12):
        logits = model.model(torch.tensor([tokens])).logits[:, -1].float()
        frequency, presence = (1.5, 0.0) if name == "frequency_penalty" else (0.0, 1.5)
        scores = expected(logits, [tokens[len(prompt) :]], frequency, presence)
        tokens.append(int(scores.argmax()))
    assert list(found.sequences[0])[-12:] == tokens[len(prompt) :]


@pytest.mark.parametrize("name", PENALTIES)
def test_continued_answer_counts_the_tokens_given_to_it(name: str) -> None:
    model = tiny.shared("llama")

    def write(count: int, beginning: tuple[int, ...] = ()) -> tuple[int, ...]:
        request = core.Request(
            [7, 9], {"max_new_tokens": count}, strategy="greedy", options={name: 2.0}, beginning=beginning
        )
        return tuple(core.run(model, request).sequences[0])[-count:]

    whole = write(10)
    assert write(6, whole[:4]) == whole[4:]


@pytest.mark.parametrize("strategy", [name for name, one in strategies.items() if PENALTIES[0] in one.parameter_names])
def test_every_strategy_with_the_penalty_takes_its_value(strategy: str) -> None:
    parameters = {one.name: one for one in strategies[strategy].parameters}
    assert all((parameters[name].minimum, parameters[name].maximum) == (-2.0, 2.0) for name in PENALTIES)


@pytest.mark.parametrize("name", PENALTIES)
def test_penalty_outside_openais_range_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="2"):
        core.run(tiny.shared("llama"), core.Request([7], {"max_new_tokens": 1}, options={name: 2.5}))
