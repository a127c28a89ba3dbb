"""DoLa against the definition written out with numpy-like loops, and its layers by transformers' rule."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.dola import candidate_layers, contrast_layers, jensen_shannon
from decodescope.core.events import TokenChosen
from tests.core import tiny
from tests.long import every


def divergence(p: list[float], q: list[float]) -> float:
    """Jensen–Shannon divergence in nats, by its definition."""
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    half = [sum(a * math.log(a / m) for a, m in zip(d, middle, strict=True) if a > 0) for d in (p, q)]
    return sum(half) / 2


def naive(model: core.LoadedModel, prompt: list[int], steps: int, layers: list[int]) -> tuple[list[int], list[int]]:
    """Chuang et al. 2023 over the whole text at every step; the tokens and the layers chosen."""
    text, chosen = list(prompt), []
    for _ in range(steps):
        with torch.no_grad():
            out = model.model(torch.tensor([text]), output_hidden_states=True, use_cache=False)
            final = out.logits[0, -1].double().softmax(-1)
            early = {i: model.head(out.hidden_states[i][0, -1]).double().softmax(-1) for i in layers}
        layer = max(layers, key=lambda i: divergence(final.tolist(), early[i].tolist()))
        plausible = final >= 0.1 * final.max()
        scores = (final.log() - early[layer].log()).masked_fill(~plausible, -math.inf)
        text.append(int(scores.argmax()))
        chosen.append(layer)
    return text[len(prompt) :], chosen


@pytest.mark.parametrize("kind", every(2, tiny.DECODERS))
@pytest.mark.parametrize(("setting", "layers"), [("high", [2]), ([0, 1, 2, 3], [0, 1, 2, 3])])
def test_dola_equals_full_recomputation(kind: str, setting: str | list[int], layers: list[int]) -> None:
    model, ids = tiny.make(kind, scale=2.0), tiny.prompt()
    settings = GenerationConfig(dola_layers=setting, max_new_tokens=10, eos_token_id=60)
    result = core.run(model, core.Request(ids, settings))
    tokens, chosen = naive(model, ids, 10, layers)
    assert result.sequences[0] == tokens
    steps = [event for event in result.events if isinstance(event, TokenChosen)]
    assert [step.layer_choice.layer for step in steps if step.layer_choice] == chosen
    assert all([layer for layer, _ in step.layer_choice.divergences] == layers for step in steps if step.layer_choice)


def test_jensen_shannon_matches_a_manual_computation() -> None:
    p, q = [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]
    measured = jensen_shannon(torch.tensor([p]).log(), torch.tensor([[q]]).log())
    assert measured.item() == pytest.approx(divergence(p, q), rel=1e-5)
    assert jensen_shannon(torch.tensor([p]), torch.tensor([[p]])).item() == pytest.approx(0, abs=1e-6)


def test_contrast_drops_implausible_tokens() -> None:
    final, early = torch.tensor([[0.6, 0.37, 0.03]]).log(), torch.tensor([[0.2, 0.7, 0.1]]).log()
    scores = contrast_layers(final, early)[0]
    assert scores[:2].tolist() == pytest.approx([math.log(3), math.log(0.37 / 0.7)], rel=1e-5)
    assert scores[2] == -math.inf


@pytest.mark.parametrize(
    ("setting", "layers", "tied", "expected"),
    [
        ("low", 12, False, [0, 2, 4]),
        ("low", 12, True, [2, 4]),
        ("high", 12, True, [6, 8, 10]),
        ("low", 4, True, [2]),
        ("high", 48, False, list(range(28, 48, 2))),
        ("low", 48, False, list(range(0, 20, 2))),
        ([1, 3, 99], 6, True, [1, 3]),
    ],
)
def test_candidate_layers_follow_the_rule_of_transformers(
    setting: str | list[int], layers: int, tied: bool, expected: list[int]
) -> None:
    assert candidate_layers(setting, layers, tied) == expected


def test_sampling_from_the_contrast_is_reproducible() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    settings = GenerationConfig(dola_layers="high", do_sample=True, max_new_tokens=10)
    first, again, other = (core.run(model, core.Request(ids, settings, seed=seed)).sequences for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("kind", "reason"), [("t5", "encoder–decoder"), ("mamba", "recurrent")])
def test_unsupported_models_are_refused_with_the_reason(kind: str, reason: str) -> None:
    with pytest.raises(core.errors.StrategyError, match=reason):
        core.run(tiny.shared(kind), core.Request(tiny.prompt(), GenerationConfig(dola_layers="low")))


def test_invalid_dola_layer_raises_an_error() -> None:
    with pytest.raises(core.errors.ParameterError, match="no layer below 4"):
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), GenerationConfig(dola_layers=[17])))
