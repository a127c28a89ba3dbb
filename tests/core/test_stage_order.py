"""The order of the funnel stages: moving stages by name, invalid orders, and the effect on the text."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.decoding.processor_pipeline import build_pipeline
from decodescope.core.errors import ParameterError
from decodescope.core.processors import Context, registry
from decodescope.core.processors.pipeline_stages import is_default_order, ordered_processors
from tests.core import tiny
from tests.core.spec_models import chosen_tokens, few_token_model
from tests.core.spec_tables import SIZE, p_value

USUAL = list(registry)
SETTINGS = {"temperature": 1.7, "top_k": 9, "top_p": 0.6, "min_p": 0.04, "repetition_penalty": 1.4}
PROMPT = [5, 6, 7, 5, 6]
TURNED = ["min_p", "top_p", "top_k", "temperature", "repetition_penalty"]


def order(*names: str) -> list[str]:
    return [one.name for one in ordered_processors(names)]


def test_named_stages_exchange_positions_and_others_stay() -> None:
    assert order() == order("temperature", "top_p") == USUAL
    moved = order("top_p", "temperature", "repetition_penalty")
    places = [USUAL.index(name) for name in ("repetition_penalty", "temperature", "top_p")]
    assert [moved[place] for place in places] == ["top_p", "temperature", "repetition_penalty"]
    rest = [place for place in range(len(USUAL)) if place not in places]
    assert [moved[place] for place in rest] == [USUAL[place] for place in rest]


def test_disabled_stage_does_not_affect_the_order() -> None:
    """The order follows from the names alone: temperature takes the position of top-p, enabled or not."""
    assert is_default_order(["top_p", "temperature"], ["temperature", "min_p"])
    assert not is_default_order(["top_p", "temperature"], ["temperature", "top_k"])
    assert not is_default_order(["top_p", "temperature"], ["temperature", "top_p"])
    assert not is_default_order(["top_p", "temperature"], ["temperature", "top_k", "top_p"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["top_q"], "“top_q”, which is not a stage"),
        (["top_p", "top_k", "top_p"], "“top_p” twice"),
        (["temperature", "guidance_scale"], "guidance_scale after temperature, but it must act first"),
        (["renormalize_logits", "top_p"], "renormalize_logits before top_p, but it must act last"),
        ("top_p", "Pass a list of names"),
        ([3], "Pass a list of names"),
    ],
)
def test_invalid_stage_order_is_refused_before_the_run(names: Any, said: str) -> None:
    request = core.Request(PROMPT, {"max_new_tokens": 2}, strategy="sampling", options={"stages": names})
    with pytest.raises(ParameterError, match=said) as caught:
        core.run(tiny.shared("llama"), request)
    assert caught.value.parameter == "stages"
    assert caught.value.remedy


def by_hand(names: list[str], ids: torch.Tensor, scores: torch.Tensor, settings: Any = SETTINGS) -> torch.Tensor:
    """Apply the stages in this order, each built alone."""
    for name in names:
        own = {"do_sample": True, name: settings[name]}
        made = Context(tiny.shared("llama"), own, len(PROMPT), 40, ids, None, 1, torch.zeros)
        (stage,) = build_pipeline(made).stages
        scores = stage.process(ids, scores)
    return scores


@pytest.mark.parametrize("names", [TURNED, ["top_p", "temperature"]])
def test_stages_in_order_match_a_manual_computation(names: list[str]) -> None:
    model = tiny.shared("llama")
    config = {"max_new_tokens": 6, "min_new_tokens": 0, **SETTINGS}
    request = core.Request(PROMPT, config, "sampling", {"stages": names}, seed=3, top_n=61)
    text = list(PROMPT)
    full = [name for name in order(*names) if name in SETTINGS]
    for event in chosen_tokens(core.run(model, request)):
        assert [stage.name for stage in event.funnel[1:]] == full
        ids = torch.tensor([text])
        with torch.inference_mode():
            wanted = by_hand(full, ids, model.model(ids).logits[:, -1]).softmax(-1)[0]
        found = torch.zeros(len(wanted))
        found[[item.id for item in event.alternatives]] = torch.tensor([a.probability for a in event.alternatives])
        assert torch.allclose(found, wanted, atol=1e-5)
        text.append(event.id)


def test_default_order_given_explicitly_gives_the_same_text() -> None:
    model = tiny.shared("llama")
    written = [
        core.run(model, core.Request(PROMPT, {"max_new_tokens": 12, **SETTINGS}, "sampling", options, seed=8)).sequences
        for options in ({}, {"stages": []}, {"stages": USUAL})
    ]
    assert written[0] == written[1] == written[2]


@pytest.mark.parametrize("strategy", ["beam_search", "beam_sampling", "diverse_beam_search"])
def test_beams_use_the_stage_order(strategy: str) -> None:
    """The first step of a search: its log-probabilities are those of the stages by hand."""
    model, settings = tiny.shared("llama"), {"repetition_penalty": 3.0, "sequence_bias": [[[5], 4.0]]}
    if strategy == "beam_sampling":
        settings |= {"temperature": 2.0, "top_p": 0.8}
    config = {"max_new_tokens": 1, "num_beams": 4, "num_beam_groups": 2 if "diverse" in strategy else 1, "top_k": 0}
    names = [name for name in USUAL if name in settings][::-1]
    request = core.Request(PROMPT, {**config, **settings}, strategy, {"stages": names}, seed=1)
    (step,) = [event for event in core.run(model, request).events if isinstance(event, core.events.BeamStep)]
    ids = torch.tensor([PROMPT])
    with torch.inference_mode():
        wanted = by_hand(names, ids, model.model(ids).logits[:, -1].log_softmax(-1), settings)[0]
    found = {c.id: c.log_probability for c in step.candidates if c.group == 0}
    assert len(found) >= 4
    assert found == pytest.approx({token: wanted[token].item() for token in found}, abs=1e-5)


def _shares(model: core.LoadedModel, prompt: list[int], heat_before: float, heat_after: float) -> dict[Any, float]:
    """Probability of second and third token where top-p 0.5 acts between two temperatures."""
    pairs = list(product(range(SIZE), repeat=2))
    with torch.inference_mode():
        raw = model.model(torch.tensor([[*prompt, *pair] for pair in pairs])).logits[:, -3:]
    raw = raw / heat_before
    p = raw.softmax(-1)
    best = p.sort(-1, descending=True)
    ahead = (best.values.cumsum(-1) - best.values).gather(-1, best.indices.argsort(-1))
    p = (raw / heat_after).masked_fill(ahead >= 0.5, -torch.inf).softmax(-1)
    shares = {pair: 0.0 for pair in pairs}
    for row, (first, second) in enumerate(pairs):
        for third in range(SIZE):
            shares[second, third] += float(p[row, 0, first] * p[row, 1, second] * p[row, 2, third])
    return {pair: share for pair, share in shares.items() if share > 0}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["assisted", pytest.param("token_tree", marks=pytest.mark.fuzz)])
def test_drafts_are_verified_with_the_stage_order(strategy: str) -> None:
    """Chi-square test of whole runs, which rejects the default order."""
    model, draft, prompt = few_token_model(0), few_token_model(1), [1, 2, 3, 1, 2]
    counts = Counter[tuple[int, ...]]()
    how: dict[str, Any] = {"schedule": "constant"} if strategy == "assisted" else {"widths": "2 1"}
    config = {"max_new_tokens": 4, "do_sample": True, "temperature": 4.0, "top_p": 0.5, "top_k": 0}
    for seed in range(240):
        options = {**how, "stages": ["top_p", "temperature"]}
        request = core.Request(prompt, config, strategy, options, drafters=(draft,), seed=seed, top_n=0)
        counts[tuple(core.run(model, request).sequences[0][1:3])] += 1
    assert p_value(counts, _shares(model, prompt, 1.0, 4.0)) > 1e-3
    assert p_value(counts, _shares(model, prompt, 4.0, 1.0)) < 1e-3


def test_script_explains_and_contains_the_stage_order() -> None:
    request = core.Request("A", {"temperature": 0.5, "top_p": 0.5}, "sampling", {"stages": ["top_p", "temperature"]})
    assert "no setting for the order of the stages" in core.why_not_generate(request, model="storyteller")
    assert 'options={"stages": ["top_p", "temperature"]}' in core.as_code(request, "core", model="storyteller")
    alone = core.Request("A", {"temperature": 0.5, "top_k": 0}, "sampling", {"stages": ["top_p", "temperature"]})
    assert core.why_not_generate(alone, model="storyteller") == ""
