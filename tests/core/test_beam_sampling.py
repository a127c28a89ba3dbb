"""Beam sampling: draws of generate, and draws without replacement in the proportions that the definition gives."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
import torch
from scipy import stats
from transformers import GenerationConfig

from decodescope.core.decoding.beams.candidates import SamplingSelector
from decodescope.core.events import BeamStep, SequenceFinished
from tests.core import tiny
from tests.core.beam_reference import log_probabilities, run
from tests.core.test_beam_search import generate
from tests.core.versions import draws_alike
from tests.long import every

FILTERS: dict[str, dict[str, Any]] = {
    "plain": {"top_k": 0},
    "library default": {},
    "filters": {"temperature": 1.4, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.2},
    "few left": {"top_k": 2},
    "several ends": {"top_p": 0.95, "eos_token_id": [2, 11, 17, 30], "length_penalty": 0.5},
}


@draws_alike
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("kind", every(3, ["llama", "gpt2", "gemma3", "t5"]))
def test_beam_sampling_equals_generate(kind: str, name: str) -> None:
    """The same seed gives the same texts and scores as transformers' global generator."""
    model, ids = tiny.make(kind, scale=3.0), tiny.prompt()
    settings = {"do_sample": True, "num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 10, **FILTERS[name]}
    torch.manual_seed(11)
    texts, scores = generate(model, ids, **settings)
    found = run(model, ids, seed=11, **settings)
    assert found.scores == pytest.approx(scores, rel=1e-4, abs=1e-4)
    assert [text == reference[: len(text)] for text, reference in zip(found.sequences, texts, strict=True)] == [
        True
    ] * 3


def test_exponential_race_equals_torch_multinomial() -> None:
    scores = torch.randn(500, generator=torch.Generator().manual_seed(3)) * 3
    values, places = SamplingSelector(torch.Generator().manual_seed(4))(scores, 20, 500)
    drawn = torch.multinomial(torch.softmax(scores, -1), 20, generator=torch.Generator().manual_seed(4))
    assert places.tolist() == drawn[scores[drawn].argsort(descending=True)].tolist()
    assert values.tolist() == scores[places].tolist() == sorted(values.tolist(), reverse=True)


def test_pairs_have_the_probabilities_of_drawing_without_replacement() -> None:
    """P(i, then j) = p_i · p_j ÷ (1 − p_i), either way round, by a χ² test over 20,000 draws."""
    p = torch.tensor([0.5, 0.25, 0.15, 0.07, 0.03])
    draw, counts, rounds = SamplingSelector(torch.Generator().manual_seed(0)), Counter[tuple[int, ...]](), 20_000
    for _ in range(rounds):
        counts[tuple(draw(p.log(), 2, 5)[1].tolist())] += 1
    pairs = list(itertools.combinations(range(5), 2))  # the likelier one first
    assert set(counts) <= set(pairs)
    share = p.double() / p.double().sum()
    expected = [
        rounds * sum(float(share[i] * share[j] / (1 - share[i])) for i, j in itertools.permutations(pair))
        for pair in pairs
    ]
    assert stats.chisquare([counts[pair] for pair in pairs], expected).pvalue > 1e-3


def test_a_step_draws_from_the_processed_scores() -> None:
    """The set that one step of a run looks at, over many seeds, against the definition."""
    model, ids, rounds = tiny.make("llama", scale=3.0), tiny.prompt(), 400
    raw = torch.tensor(log_probabilities(model, ids, [()])[0], dtype=torch.double)
    top = (raw / 0.3).topk(6)
    p = dict(zip(top.indices.tolist(), torch.softmax(top.values, -1).tolist(), strict=True))
    counts = Counter[frozenset[int]]()
    for seed in range(rounds):
        found = run(
            model, ids, "beam_sampling", seed=seed, num_beams=1, do_sample=True, temperature=0.3, top_k=6,
            max_new_tokens=1,
        )  # fmt: skip
        step = next(event for event in found.events if isinstance(event, BeamStep))
        counts[frozenset(item.id for item in step.candidates)] += 1
    assert all(len(pair) == 2 for pair in counts)
    pairs = [frozenset(pair) for pair in itertools.combinations(p, 2)]
    assert set(counts) <= set(pairs)
    expected = [rounds * sum(p[i] * p[j] / (1 - p[i]) for i, j in itertools.permutations(pair)) for pair in pairs]
    assert min(expected) > 5
    assert stats.chisquare([counts[pair] for pair in pairs], expected).pvalue > 1e-3


def test_candidates_are_drawn_once_and_depend_on_the_seed() -> None:
    model, ids = tiny.make("llama", scale=2.0), tiny.prompt()
    runs = [run(model, ids, "beam_sampling", seed=seed, num_beams=4, max_new_tokens=8) for seed in (1, 1, 2)]
    assert runs[0].sequences == runs[1].sequences
    assert runs[0].sequences != runs[2].sequences
    for event in runs[0].events:
        if isinstance(event, BeamStep):
            drawn = [(item.parent, item.id) for item in event.candidates]
            assert len(set(drawn)) == len(drawn)


def test_beam_sampling_beyond_the_multinomial_limit() -> None:
    """torch.multinomial refuses more than 2^24 categories; beams times vocabulary may be more."""
    flat = torch.zeros(2**24 + 3)
    flat[-2:] = 30.0
    _values, places = SamplingSelector(torch.Generator().manual_seed(0))(flat, 2, 2**24 + 3)
    assert sorted(places.tolist()) == [2**24 + 1, 2**24 + 2]


def test_flags_select_beam_sampling() -> None:
    config = GenerationConfig(do_sample=True, num_beams=3, max_new_tokens=4)
    from decodescope import core

    found = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config))
    assert found.events[0].strategy == "beam_sampling"  # type: ignore[attr-defined]


def test_text_cut_off_by_the_limit_finishes_with_length() -> None:
    """The best of those that were drawn end, and as many others as there are beams go on."""
    model, ids = tiny.make("llama", scale=3.0), tiny.prompt()
    settings = {"do_sample": True, "num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 4, "eos_token_id": 2}
    for seed in range(20):
        found = run(model, ids, seed=seed, **settings)
        endings = [event for event in found.events if isinstance(event, SequenceFinished)]
        assert {(end.reason, end.limit) for end in endings} <= {("length", 4.0), ("eos", None)}
