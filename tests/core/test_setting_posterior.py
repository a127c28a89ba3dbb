"""The posterior of the settings that wrote a text."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t

from decodescope import core
from decodescope.core.errors import DecodescopeError, ParameterError, PromptError
from decodescope.core.likelihood import setting_posterior as posterior
from decodescope.core.likelihood.setting_posterior import MIN_P, TOP_K, TOP_P, Order
from tests.core import tiny

PROMPT = "Once upon a time"


def _written(model: core.LoadedModel, seed: int, tokens: int = 60, **settings: object) -> list[int]:
    config = {"do_sample": True, "max_new_tokens": tokens, "top_k": 0, "eos_token_id": None, **settings}
    return list(core.run(model, core.Request(PROMPT, config, seed=seed, top_n=0)).sequences[0])


def _drawn(rng: np.random.Generator) -> dict[str, Any]:
    """Settings from the prior, with temperatures that write readable texts."""

    def pick(values: tuple[float, ...], off: float) -> float:
        return off if rng.random() < 0.5 else float(rng.choice(values))

    temperature = math.exp(rng.uniform(math.log(0.05), math.log(3.0)))
    return {
        "temperature": temperature, "top_k": int(pick(TOP_K, 0)), "top_p": pick(TOP_P, 1.0), "min_p": pick(MIN_P, 0.0),
    }  # fmt: skip


def _hits(texts: int, tokens: int) -> int:
    model, rng, hits = core.load("storyteller"), np.random.default_rng(11), 0
    for seed in range(texts):
        settings = _drawn(rng)
        ids = _written(model, seed, tokens, **settings)
        hits += core.infer_settings(model, ids, given=PROMPT).contains_temperature(settings["temperature"])
    return hits


def test_true_temperature_lies_in_most_intervals() -> None:
    assert _hits(6, 25) >= 4  # of 6 with 90 % each, fewer than 4 happen once in 60 times; the seeds are fixed


@pytest.mark.slow
def test_true_temperature_of_200_texts_lies_in_90_percent_of_intervals() -> None:
    assert 170 <= _hits(200, 50) <= 190


def test_gap_of_the_temperatures_that_only_coarse_filters_cause_is_closed() -> None:
    """With three times as many values of the filters, the density of this text has no gap."""
    model = core.load("storyteller")
    ids = _written(model, 46, 40, temperature=1.2272, top_p=0.9, min_p=0.15)
    found = core.infer_settings(model, ids, given=PROMPT)
    ((low, high),) = found.intervals
    inside = [low <= value <= high for value in found.grids["temperature"]]
    assert 0.9 <= sum(itertools.compress(found.density, inside)) < 0.93


def test_temperatures_between_two_separate_peaks_are_left_out() -> None:
    cells = np.arange(64)
    density = sum(np.exp(-0.5 * ((cells - peak) / 3) ** 2) for peak in (15, 45))
    density /= density.sum()
    edges = np.linspace(0.0, 1.0, 65)
    first, second = posterior._density_set(density, edges)
    assert first[1] < 30 / 64 < second[0]
    shallow = np.where((cells > 10) & (cells < 50), 1.0, 0.05)
    shallow[30:33] = 0.7
    ((low, high),) = posterior._density_set(shallow / shallow.sum(), edges)
    assert (low, high) == (11 / 64, 50 / 64)


@pytest.mark.parametrize("order", ["temperature_first", "temperature_last"])
def test_likelihood_of_a_cell_equals_transformers_processors(order: Order) -> None:
    model = tiny.make("llama", scale=2.0)
    prompt, ids = tiny.prompt(), tiny.prompt(9, seed=4)
    found = core.infer_settings(model, ids, given=prompt, order=order)
    with torch.inference_mode():
        scores = model.model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].float()
    grids = found.grids
    cells = [(0, 0, 0, 0), (20, 5, 3, 2), (63, 8, 14, 0), (40, -1, 6, 4), (31, 2, -1, 5)]
    logs = []
    for cell in cells:
        temperature, top_k, top_p, min_p = (grids[name][at] for name, at in zip(posterior.SETTINGS, cell, strict=True))
        stages: list[Any] = [t.TopKLogitsWarper(int(top_k))] if top_k else []
        stages += [t.TopPLogitsWarper(top_p)] if top_p < 1 else []
        stages += [t.MinPLogitsWarper(min_p)] if min_p else []
        divide = t.TemperatureLogitsWarper(temperature)
        own = scores
        for stage in [divide, *stages] if order == "temperature_first" else [*stages, divide]:
            own = stage(torch.tensor([ids]), own)
        index = torch.tensor(ids)[:, None]
        shares = own.double().softmax(-1).gather(1, index)
        raw = scores.double().softmax(-1).gather(1, index)
        prior = math.prod(found.priors[name][at] for name, at in zip(posterior.SETTINGS, cell, strict=True))
        logs.append(float(((1 - posterior.EPSILON) * shares + posterior.EPSILON * raw).log().sum()) + math.log(prior))
    got = [math.log(found.weights[cell]) for cell in cells]
    for first, second in itertools.pairwise(range(len(cells))):
        assert got[second] - got[first] == pytest.approx(logs[second] - logs[first], abs=1e-4)
    assert found.weights.sum() == pytest.approx(1.0)


def test_filter_that_was_used_is_found_and_smaller_ones_are_forbidden() -> None:
    model = core.load("storyteller")
    ids = _written(model, 3, 150, temperature=2.0, top_k=10)
    found = core.infer_settings(model, ids, given=PROMPT)
    assert 10 in found.credible("top_k")
    assert set(found.credible("top_k")) <= {8, 10, 15}
    assert found.forbidding("top_k", 5)
    assert all(one.rank > 5 for one in found.forbidding("top_k", 5))
    assert found.forbidding("top_k", 10) == found.forbidding("top_p", 1.0) == found.forbidding("min_p", 0.0) == []
    assert len(found.forbidding("top_p", 0.3)) > len(found.forbidding("top_p", 0.7))


def test_token_that_no_setting_explains_is_named_and_does_not_decide() -> None:
    model, prompt = tiny.make("llama", scale=2.0), tiny.prompt()
    config = {"do_sample": True, "max_new_tokens": 100, "top_k": 5, "eos_token_id": None}
    ids = list(core.run(model, core.Request(prompt, config, seed=1)).sequences[0])
    with torch.inference_mode():
        logits = model.model(torch.tensor([[*prompt, *ids]])).logits[0, -2]
    changed = [*ids[:99], int(logits.argsort(descending=True)[19])]  # later tokens would follow another text
    found = core.infer_settings(model, changed, given=prompt)
    assert [one.position for one in found.unexplained] == [99]
    assert found.contains_temperature(1.0)
    assert set(found.credible("top_k")) <= {5, 8}


def test_greedy_text_is_named_with_the_temperatures_that_write_it_too() -> None:
    model = core.load("storyteller")
    ids = list(core.run(model, core.Request(PROMPT, {"max_new_tokens": 40})).sequences[0])
    found = core.infer_settings(model, ids, given=PROMPT)
    assert found.is_greedy
    assert found.greedy_below is not None
    assert 0.01 < found.greedy_below < 0.6
    assert not core.infer_settings(model, _written(model, 1, temperature=1.5), given=PROMPT).is_greedy


def test_temperature_and_top_p_form_a_ridge_in_a_short_text() -> None:
    model = core.load("storyteller")
    found = core.infer_settings(model, _written(model, 2, 60, temperature=1.0, top_p=0.7), given=PROMPT)
    ridge = next(one for one in found.ridges if one.setting == "top_p")
    temperatures = [temperature for _, temperature, _ in sorted(ridge.points)]
    assert temperatures[0] > temperatures[-1]


def test_known_penalty_is_applied_and_a_missing_one_costs_likelihood() -> None:
    model = core.load("storyteller")
    ids = _written(model, 4, 100, temperature=0.8, repetition_penalty=1.5)
    right = core.infer_settings(model, ids, given=PROMPT, known={"repetition_penalty": 1.5})
    wrong = core.infer_settings(model, ids, given=PROMPT)
    assert right.contains_temperature(0.8)
    assert right.log_evidence > wrong.log_evidence + 5


def test_prompt_reading_that_was_used_is_chosen() -> None:
    model = core.load("storyteller")
    readings = core.prompt_readings(model, PROMPT)
    ids = _written(model, 6, 60, temperature=0.8)
    found = core.infer_settings(model, ids, readings=readings)
    assert found.readings[0].name == "text"
    assert len(found.readings) == len(readings) >= 2
    assert not found.was_retokenized
    assert core.infer_settings(model, "there was a cat", given=PROMPT).was_retokenized


def test_long_text_is_read_again_instead_of_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.make("llama", scale=2.0)
    prompt, ids = tiny.prompt(), tiny.prompt(9, seed=4)
    kept = core.infer_settings(model, ids, given=prompt)
    monkeypatch.setattr(posterior, "_MAX_KEPT", 1)
    assert np.allclose(core.infer_settings(model, ids, given=prompt).weights, kept.weights)


def test_cancel_ends_with_the_tokens_so_far() -> None:
    model, cancel = tiny.make("llama", scale=2.0), threading.Event()

    def stop(progress: core.PosteriorProgress) -> None:
        if progress.done == 4:
            cancel.set()

    found = core.infer_settings(model, tiny.prompt(9), given=tiny.prompt(), progress=stop, cancel=cancel)
    assert not found.is_complete
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"known": {"top_k": 5}}, ParameterError), ({"known": {"xtc_probability": 0.5}}, ParameterError),
        ({"order": "backwards"}, ParameterError), ({"readings": {}}, ParameterError),
        ({"given": [5], "ids": []}, PromptError),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_used_are_refused(more: dict[str, Any], error: type[DecodescopeError]) -> None:
    model = tiny.shared("llama")
    ids = more.pop("ids", [4, 5, 6])
    with pytest.raises(error):
        core.infer_settings(model, ids, **more)
