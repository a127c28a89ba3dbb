"""Effects of each setting in a run, and runs that differ in one thing."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy import stats

from decodescope import core
from decodescope.core.counterfactuals import twin_runs
from decodescope.core.counterfactuals.setting_effects import SettingEffect, count_interval
from decodescope.core.decoding.keyed_noise import (
    KeyedNoise,
    TextNoise,
    context_spellings,
    posterior_noise,
    token_keys,
)
from decodescope.resources import depth
from tests.core import tiny as models
from tests.core.recorded_claims import explanations_at

SETTINGS = {"do_sample": True, "temperature": 0.8, "top_k": 12, "top_p": 0.85, "min_p": 1e-9, "max_new_tokens": 25}


def _traced(**more: object) -> tuple[core.LoadedModel, core.Request, core.Result, core.ScoreCache]:
    model, scores = models.make("llama", scale=1.8), core.ScoreCache()
    request = core.Request(models.prompt(), {**SETTINGS, **more}, seed=6)
    return model, request, core.run(model, request, scores=scores), scores


def _final(logits: torch.Tensor, order: tuple[str, ...]) -> np.ndarray:
    """The log-probabilities after these stages, written out."""
    row = logits.double().numpy()[0].copy()
    for name in order:
        shares = np.exp(row - np.logaddexp.reduce(row))
        if name == "temperature":
            row = row / 0.8
        elif name == "top_k":
            row = np.where(row >= np.sort(row)[-12], row, -np.inf)
        elif name == "top_p":
            row = np.where([shares[shares > one].sum() < 0.85 for one in shares], row, -np.inf)
    return row - np.logaddexp.reduce(row)


def test_effects_with_stored_scores_equal_those_written_out() -> None:
    model, request, result, scores = _traced()
    effects = core.setting_effects(result, scores, model, request)
    names = ("temperature", "top_k", "top_p", "min_p")
    assert [one.name for one in effects] == list(names)
    ids, start = result.sequences[0], models.prompt()
    stored = [scores.get(start, ids, step, 0) for step in range(len(ids))]
    raw = [one.raw for one in stored if one is not None]
    assert len(raw) == len(ids)

    def value(active: tuple[str, ...]) -> float:
        order = tuple(name for name in names if name in active)
        parts = [np.abs(np.exp(_final(one, ())) - np.exp(_final(one, order))).sum() / 2 for one in raw]
        return float(np.mean(parts))

    for name in names:
        without = tuple(one for one in names if one != name)
        distances = [np.abs(np.exp(_final(one, names)) - np.exp(_final(one, without))).sum() / 2 for one in raw]
        gains = []
        for order in permutations(names):
            place = order.index(name)
            gains.append(value(order[: place + 1]) - value(order[:place]))
        found = next(one for one in effects if one.name == name)
        assert found.distance == pytest.approx(np.mean(distances), abs=1e-6)
        assert found.share == pytest.approx(np.mean(gains), abs=1e-6)
    assert sum(one.share or 0.0 for one in effects) == pytest.approx(value(names), abs=1e-6)


def test_neutral_settings_have_exactly_no_effect() -> None:
    model, request, result, scores = _traced(typical_p=1.0, repetition_penalty=1.0)
    effects = {one.name: one for one in core.setting_effects(result, scores, model, request)}
    for name in ("min_p", "typical_p", "repetition_penalty"):
        one = effects[name]
        assert (one.removed, one.moved, one.distance, one.differing, one.interval) == (0, (0.0, 0.0), 0, 0, (0, 0))
        assert "changed nothing in 25 tokens" in one.sentence
    assert effects["typical_p"].share == 0
    assert effects["min_p"].share == pytest.approx(0, abs=1e-9)


def test_simulated_flips_lie_in_the_interval() -> None:
    """Draw posterior noise for the written tokens and apply it without top-p."""
    model, request, result, scores = _traced(top_p=0.6)
    effects = core.setting_effects(result, scores, model, request)
    effect = next(one for one in effects if one.name == "top_p")
    assert effect.interval is not None
    replayed = request.with_settings({"top_p": 1.0})
    ids, counts = result.sequences[0], np.zeros(200)
    for step, token in enumerate(ids):
        both = [core.replay_step(model, each, ids, step, scores=scores) for each in (request, replayed)]
        assert both[0].before.id == token
        stored = scores.get(models.prompt(), ids, step, 0)
        assert stored is not None
        row = stored.raw[0].double().numpy() / 0.8
        kept = row >= np.sort(row)[-12]
        after = np.where(kept, row, -np.inf)
        shares = np.exp(after - np.logaddexp.reduce(after))
        before = np.where([shares[shares > one].sum() < 0.6 for one in shares], after, -np.inf)
        for draw in range(200):
            noise = KeyedNoise(1, token_keys(model)).gumbel(step, draw)
            counts[draw] += (after + posterior_noise(before, token, noise)).argmax() != token
    low, high = effect.interval
    assert np.mean((counts >= low) & (counts <= high)) > 0.9
    assert counts.mean() == pytest.approx(effect.differing, abs=4 * counts.std() / np.sqrt(200))


def test_interval_of_a_count_contains_at_least_95_percent() -> None:
    low, high = count_interval([0.3] * 40)
    inside = stats.binom.cdf(high, 40, 0.3) - stats.binom.cdf(low - 1, 40, 0.3)
    assert inside >= 0.95
    assert (low, high) == tuple(int(one) for one in stats.binom.interval(0.95, 40, 0.3))
    assert count_interval([0.0, 0.0]) == (0, 0)


def test_effects_of_a_recording_agree_with_the_exact_ones() -> None:
    """Bounds contain the exact values, and settings that removed nothing are found."""
    model, request, result, scores = _traced()
    exact = {one.name: one for one in core.setting_effects(result, scores, model, request)}
    recorded = core.setting_effects(result)
    for one in recorded:
        assert one.removed == pytest.approx(exact[one.name].removed, abs=1e-5)
        assert one.moved[0] - 1e-5 <= exact[one.name].moved[0] <= one.moved[1] + 1e-5
        if one.differing is not None:
            assert one.differing == pytest.approx(exact[one.name].differing, abs=1e-4)
    known = {one.name for one in recorded if one.differing is not None}
    assert known == {"min_p"}
    assert "10 of 61 probabilities" in recorded.missing
    assert len(recorded.to_dataframe()) == 4


def test_effects_of_a_greedy_run_count_tokens_that_flip_for_certain() -> None:
    model, scores = models.make("llama", scale=1.8), core.ScoreCache()
    request = core.Request(models.prompt(), {"repetition_penalty": 1.8, "max_new_tokens": 20})
    result = core.run(model, request, scores=scores)
    (effect,) = core.setting_effects(result, scores, model, request)
    ids = result.sequences[0]
    flips = sum(
        core.replay_step(model, request, ids, step, {"repetition_penalty": None}, scores=scores).after.id != ids[step]
        for step in range(len(ids))
    )
    assert flips > 0
    assert effect.differing == flips
    assert effect.interval == (flips, flips)


def test_effects_with_random_and_stateful_stages_repeat_their_numbers() -> None:
    model, request, result, scores = _traced(xtc_probability=0.6, xtc_threshold=0.02, mirostat_tau=3.0, top_p=1.0)
    effects = {one.name: one for one in core.setting_effects(result, scores, model, request)}
    kept = core.setting_effects(result)
    for one in kept:
        assert one.removed == pytest.approx(effects[one.name].removed, abs=1e-5)


def test_effects_without_what_they_need_are_refused() -> None:
    model, request, result, scores = _traced()
    with pytest.raises(core.errors.ParameterError, match="model and the request"):
        core.setting_effects(result, scores)
    untraced = core.run(model, core.Request(models.prompt(), SETTINGS, top_n=0))
    with pytest.raises(core.errors.ParameterError, match="recorded no stages"):
        core.setting_effects(untraced)
    beams = core.run(model, core.Request(models.prompt(), {"num_beams": 2, "max_new_tokens": 3}))
    with pytest.raises(core.errors.ParameterError, match="one by one"):
        core.setting_effects(beams)
    other = request.with_settings({"suppress_tokens": [result.sequences[0][0]]})
    with pytest.raises(core.errors.ParameterError, match="exclude the token"):
        core.setting_effects(result, scores, model, other)


def test_scores_read_again_give_the_same_effects_as_those_of_the_run() -> None:
    model, request, result, scores = _traced(repetition_penalty=1.2)
    counts: list[int] = []
    again = core.read_scores(model, request, result.sequences[0], progress=counts.append)
    assert counts == list(range(1, 26))
    expected = core.setting_effects(result, scores, model, request)
    found = core.setting_effects(result, again, model, request)
    for one, other in zip(found, expected, strict=True):
        assert one[:3] == other[:3]
        assert one.differing == pytest.approx(other.differing, abs=1e-4)
        assert one.share == pytest.approx(other.share, abs=1e-5)


def test_scores_of_a_later_text_of_a_run_are_read_by_its_number() -> None:
    model = models.make("llama", scale=1.8)
    request = core.Request(models.prompt(), {**SETTINGS, "num_return_sequences": 2}, seed=6)
    scores = core.ScoreCache()
    result = core.run(model, request, scores=scores)
    again = core.read_scores(model, request, result.sequences[1], sequence=1)
    expected = core.setting_effects(result, scores, model, request, sequence=1)
    found = core.setting_effects(result, again, model, request, sequence=1)
    assert [one.distance for one in found] == pytest.approx([one.distance for one in expected], abs=1e-5)


def test_scores_of_another_text_or_strategy_are_refused() -> None:
    model, request, result, _ = _traced()
    other = core.ScoreCache()
    core.run(model, replace(request, prompt=[5, 6]), scores=other)
    with pytest.raises(core.errors.ParameterError, match="No scores of this text"):
        core.setting_effects(result, other, model, request)
    with pytest.raises(core.errors.StrategyError, match="token by token"):
        core.read_scores(model, core.Request(models.prompt(), {"num_beams": 2}), [5, 6])


# Twins


def _request(**more: object) -> core.Request:
    return core.Request(models.prompt(), {**SETTINGS, **more}, seed=6)


def test_twins_without_a_difference_are_equal() -> None:
    model = models.make("llama", scale=1.8)
    found = core.twin(_request(), _request(), model=model)
    assert found.ids[0] == found.ids[1]
    assert (found.first_difference, found.difference, found.caused, found.expected) == (None, "", 0, 0)
    assert [part.is_equal for part in found.alignment] == [True]


def test_twins_flip_where_the_changed_request_chooses_another_token() -> None:
    model, settings = models.make("llama", scale=1.2), {"do_sample": True, "max_new_tokens": 12}
    sides = [core.Request(models.prompt(), {**settings, "temperature": t}, seed=2, top_n=0) for t in (0.5, 1.5)]
    found = core.twin(*sides, model=model)
    assert found.difference == "temperature"
    keyed = [side.with_settings({"keyed_noise": True}) for side in sides]
    first, second = (core.run(model, side).sequences[0] for side in keyed)
    assert found.ids == (first, second)
    assert found.caused == sum(bool(token.flips) for token in found) / len(first)
    start = found.first_difference
    assert start is not None
    assert not any(token.flips for token in found[:start])
    assert found[start].flips
    assert found[start].other_id == second[start]
    for step in range(len(first)):
        changed = replace(keyed[1], beginning=first[:step]).with_settings({"max_new_tokens": 1})
        assert core.run(model, changed).sequences[0][0] == found[step].other_id


def test_realigned_twins_choose_by_the_noise_after_their_own_text() -> None:
    model, settings = models.make("llama", scale=1.2), {"do_sample": True, "max_new_tokens": 10}
    first = core.Request(models.prompt(), {**settings, "temperature": 0.5}, seed=2, top_n=0)
    same = core.twin(first, first, model=model, realign=True)
    assert same.ids[0] == same.ids[1]
    assert (same.caused, same.common, same.rejoins, same.is_realigned) == (0, 1.0, [], True)
    sides = (first, first.with_settings({"temperature": 1.5}))
    found = core.twin(*sides, model=model, realign=True)
    assert found.ids[0] == same.ids[0]
    start = found.first_difference
    assert start is not None
    assert not any(token.flips for token in found[:start])
    assert found[start].other_id == found.ids[1][start]
    keyed, changed = TextNoise(KeyedNoise(2, token_keys(model)), context_spellings(model)), sides[1]
    for step, token in enumerate(found.ids[1]):
        choices = _choices(model, replace(changed, top_n=61), found.ids[1][:step])
        sums = {one.id: one.log_probability + keyed.step.gumbel(0)[one.id] for one in choices}
        assert max(sums, key=sums.__getitem__) == token, step
        keyed.add(token)


@pytest.mark.slow
def test_realigned_twins_each_follow_the_sampling_distribution() -> None:
    """χ² of the first two tokens of the changed side over seeds, against exact probabilities."""
    model = models.make("llama", scale=1.5)
    request = core.Request(models.prompt(), {"do_sample": True, "max_new_tokens": 2, "top_k": 3}, top_n=3)
    changed, expected = request.with_settings({"temperature": 1.4}), dict[tuple[int, ...], float]()
    for first in _choices(model, changed, []):
        for second in _choices(model, changed, [first.id]):
            expected[first.id, second.id] = first.probability * second.probability
    counts = Counter(
        tuple(core.twin(replace(request, seed=seed), replace(changed, seed=seed), model=model, realign=True).ids[1])
        for seed in range(250)
    )
    assert set(counts) <= set(expected)
    assert stats.chisquare([counts[ids] for ids in expected], [250 * p for p in expected.values()]).pvalue > 1e-3


def _choices(model: core.LoadedModel, request: core.Request, beginning: list[int]) -> list[core.events.Alternative]:
    one = replace(request, beginning=beginning).with_settings({"max_new_tokens": 1})
    token = next(event for event in core.run(model, one).events if isinstance(event, core.events.TokenChosen))
    return [choice for choice in token.alternatives if choice.probability > 0]


def test_alignment_counts_common_parts_of_three_tokens_and_more() -> None:
    found = core.Twin([])
    found.ids = ([1, 2, 3, 4, 5, 6, 7], [1, 9, 9, 3, 4, 5, 8, 7])
    found.alignment = twin_runs._align(*found.ids)
    assert [(part.start, part.stop, part.other_start) for part in found.rejoins] == [(2, 5, 3)]
    assert found.common == 5 / 8


def test_twins_flip_as_often_as_expected() -> None:
    model = models.make("llama", scale=1.8)
    flips, expected, variance = 0.0, 0.0, 0.0
    for seed in range(6):
        sides = [core.Request(models.prompt(), {**SETTINGS, "temperature": t}, seed=seed, top_n=0) for t in (0.8, 1.6)]
        found = core.twin(*sides, model=model)
        flips += sum(bool(token.flips) for token in found)
        expected += sum(token.flip_probability for token in found)
        variance += sum(token.flip_probability * (1 - token.flip_probability) for token in found)
    assert abs(flips - expected) < 4 * np.sqrt(variance)


def test_twin_of_a_recorded_text_has_probabilities_only() -> None:
    model = models.make("llama", scale=1.8)
    ids = core.run(model, _request()).sequences[0]
    found = core.twin(_request(), _request(top_p=0.5), model=model, ids=ids)
    assert found.caused is None
    assert {token.flips for token in found} == {None}
    assert 0 < (found.expected or 0) < 1
    assert len(found.to_dataframe()) == len(ids)


def test_twins_of_models_with_other_tokens_compare_their_texts() -> None:
    sides = [(model, core.Request([4, 5, 6], SETTINGS)) for model in (models.shared("llama"), core.load("storyteller"))]
    found = core.twin(*sides)
    assert found.difference == "model"
    assert len(found) == 0
    assert found.caused is None
    assert all(found.ids)


def test_twins_that_differ_in_several_things_are_refused() -> None:
    model = models.shared("llama")
    with pytest.raises(core.errors.ParameterError, match="top_k, top_p"):
        core.twin(_request(), _request(top_p=0.5, top_k=3), model=model)
    other_seed = core.Request(models.prompt(), SETTINGS, seed=7)
    with pytest.raises(core.errors.ParameterError, match="random numbers"):
        core.twin(_request(), other_seed, model=model)
    with pytest.raises(core.errors.ParameterError, match="no model"):
        core.twin(_request(), _request())
    with pytest.raises(core.errors.StrategyError, match="one random draw"):
        core.twin(_request(num_beams=2), _request(num_beams=2), model=model)


def test_twin_reports_its_progress_and_stops_with_the_tokens_so_far() -> None:
    model, cancel, counts = models.make("llama", scale=1.8), threading.Event(), list[int]()

    def stop(count: int) -> None:
        counts.append(count)
        if count == 4:
            cancel.set()

    first, changed = _request(min_new_tokens=8), _request(min_new_tokens=8, temperature=1.3)
    found = core.twin(first, changed, model=model, progress=stop, cancel=cancel)
    assert (len(found), counts) == (4, [1, 2, 3, 4])


def test_sentences_of_an_effect_have_no_space_between_them_in_chinese() -> None:
    effects = [
        SettingEffect("top_k", "top-k 5", 20, 0.1, (0.1, 0.1), 0.1, differing, (0, 3), None)
        for differing in (None, 0.0, 2.5)
    ]
    assert all(". " in effect.sentence for effect in effects)
    with explanations_at(depth.USUAL, "zh_CN"):
        assert all("。 " not in effect.sentence and "。" in effect.sentence for effect in effects)
