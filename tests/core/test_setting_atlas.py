"""All texts of one seed over the values of a setting."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from decodescope import core
from decodescope.core.counterfactuals.score_bounds import FollowingStage, ScoreFamily, solve_step
from decodescope.core.decoding.keyed_noise import KeyedNoise
from tests.core import tiny as models

CASES: list[tuple[str, Mapping[str, object]]] = [
    ("temperature", {"top_k": 0}),
    ("temperature", {}),
    ("temperature", {"top_p": 0.9, "min_p": 0.05, "top_k": 20}),
    ("temperature", {"repetition_penalty": 1.2, "typical_p": 0.9}),
    ("temperature", {"epsilon_cutoff": 0.01, "eta_cutoff": 0.02}),
    ("temperature", {"stages": ["top_k", "top_p", "min_p", "temperature"], "top_p": 0.9}),
    ("temperature", {"guidance_scale": 1.5}),
    ("top_k", {"temperature": 1.2, "top_p": 0.95}),
    ("top_p", {"temperature": 1.1}),
    ("top_p", {"stages": ["top_k", "top_p", "min_p", "temperature"], "temperature": 1.3}),
    ("min_p", {"temperature": 1.2, "top_p": 0.95}),
    ("typical_p", {}),
    ("epsilon_cutoff", {}),
    ("eta_cutoff", {}),
    ("top_n_sigma", {}),
    ("guidance_scale", {"top_k": 0}),
    ("guidance_scale", {"temperature": 0.8, "top_p": 0.95, "repetition_penalty": 1.3}),
    ("bias", {"top_p": 0.9}),
]


def _model() -> core.LoadedModel:
    return models.make("llama", scale=2.0)


def _request(seed: int = 3, tokens: int = 7, **settings: object) -> core.Request:
    return core.Request(models.prompt(), {"max_new_tokens": tokens, **settings}, seed=seed, top_n=0)


def _map(model: core.LoadedModel, request: core.Request, setting: str, **more: Any) -> core.SettingAtlas:
    word = {"word": [11]} if setting == "bias" else {}
    return core.map_setting(model, request, setting, **word, **more)


@pytest.mark.every(3)
@pytest.mark.parametrize(("setting", "settings"), CASES)
def test_atlas_equals_plain_runs_at_random_values_and_has_no_gaps(setting: str, settings: Mapping[str, object]) -> None:
    model = _model()
    atlas = _map(model, _request(**settings), setting)
    assert atlas.is_complete
    assert all(first.high == second.low and first.ids != second.ids for first, second in pairwise(atlas))
    assert all(second.difference == core_difference(first.ids, second.ids) for first, second in pairwise(atlas))
    rng = random.Random(setting)
    whole = setting == "top_k"
    values = [rng.randint(1, 61) if whole else rng.uniform(atlas.low, atlas.high) for _ in range(10)]
    values += [interval.high if whole else (interval.low + interval.high) / 2 for interval in atlas[:10]]
    for value in values:
        plain = core.run(model, atlas.request_at(value))
        assert (tuple(plain.sequences[0]), plain.texts[0]) == (atlas.at(value).ids, atlas.at(value).text)


def core_difference(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """The first index at which two texts differ."""
    return next(place for place in range(len(first)) if place >= len(second) or first[place] != second[place])


def _chosen(scores: np.ndarray[Any, Any], noise: np.ndarray[Any, Any], kept: np.ndarray[Any, Any]) -> int:
    return int(np.where(kept, scores + noise, -np.inf).argmax())


@pytest.mark.parametrize("seed", range(4))
def test_step_equals_brute_force_on_a_fine_grid(seed: int) -> None:
    """Temperature, then top-p and min-p, written out by hand for eight tokens."""
    rng = np.random.default_rng(seed)
    logits, noise = rng.normal(0, 2, 8), KeyedNoise(seed, np.arange(8, dtype=np.uint64)).gumbel(0)
    stages = [FollowingStage("top_p", "mass", 0.8), FollowingStage("min_p", "ratio", 0.05)]
    segments = solve_step(ScoreFamily(logits, np.zeros(8), True), stages, noise, 0.0, 5.0)
    assert (segments[0].low, segments[-1].high) == (0.0, 5.0)
    for value in np.linspace(0.003, 5.0, 1_500):
        scores = logits / value
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        before = np.array([shares[shares > one].sum() for one in shares])
        kept = (before < 0.8) & (shares >= 0.05 * shares.max())
        known = next(one for one in segments if value <= one.high)
        if min(abs(value - one.high) for one in segments) > 1e-9:
            assert _chosen(scores, noise, kept) == known.token


def test_texts_at_one_temperature_are_distributed_as_sampled_ones() -> None:
    """χ² of the first two tokens over seeds, against plain sampling with other random numbers."""
    model = models.make("llama", scale=1.2)
    count = 250
    request = _request(tokens=2, top_k=3)
    mapped = Counter(
        core.map_setting(model, core.Request(request.prompt, request.config, seed=seed, top_n=0), low=0.8, high=1.2)
        .at(1.0).ids
        for seed in range(count)
    )  # fmt: skip
    settings = {"do_sample": True, "top_k": 3, "max_new_tokens": 2, "num_return_sequences": 2_000}
    plain = Counter(tuple(ids) for ids in core.run(model, core.Request(models.prompt(), settings, top_n=0)).sequences)
    assert set(mapped) <= set(plain)
    table = [[mapped[ids] for ids in plain if plain[ids] > 60], [plain[ids] for ids in plain if plain[ids] > 60]]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_atlas_shares_the_passes_of_common_beginnings() -> None:
    atlas = _map(_model(), _request(), "temperature")
    beginnings = {interval.ids[:length] for interval in atlas for length in range(len(interval.ids))}
    assert atlas.passes == len(beginnings) < atlas.passes_of_runs


def test_probability_is_that_of_the_model() -> None:
    model = _model()
    atlas = _map(model, _request(), "temperature")
    scored = core.score(model, list(atlas[1].ids), given=models.prompt())
    assert atlas[1].log_probability == pytest.approx(sum(token.log_probability for token in scored), abs=1e-4)


def test_atlas_with_stop_strings_and_end_tokens_ends_texts_like_a_run() -> None:
    model = core.load("storyteller")
    request = core.Request("Once upon a time", {"max_new_tokens": 12, "stop_strings": [" was"]}, seed=2, top_n=0)
    atlas = core.map_setting(model, request, high=1.5)
    assert "stop_string" in {interval.ending for interval in atlas}
    for interval in atlas:
        plain = core.run(model, atlas.request_at((interval.low + interval.high) / 2))
        assert plain.texts[0] == interval.text


def test_atlas_beyond_the_limit_of_work_is_unfinished_and_has_no_gaps() -> None:
    seen: list[core.AtlasProgress] = []
    atlas = _map(_model(), _request(tokens=20), "temperature", max_passes=15, progress=seen.append)
    assert not atlas.is_complete
    assert (atlas.passes, len(seen), seen[-1].passes) == (15, 15, 15)
    assert (atlas.low, atlas.high) == (0.0, 2.0)
    assert all(first.high == second.low for first, second in pairwise(atlas))
    assert "unfinished" in {interval.ending for interval in atlas}
    assert "unfinished" in repr(atlas)


def test_stopped_atlas_covers_the_interval() -> None:
    cancel = threading.Event()
    atlas = _map(_model(), _request(tokens=20), "temperature", cancel=cancel, progress=lambda _: cancel.set())
    assert not atlas.is_complete
    assert (atlas.low, atlas.high, atlas.passes) == (0.0, 2.0, 1)


def test_atlas_of_an_encoder_decoder_equals_plain_runs() -> None:
    model = models.shared("t5")
    atlas = _map(model, _request(tokens=5), "temperature")
    for interval in atlas[:4]:
        plain = core.run(model, atlas.request_at((interval.low + interval.high) / 2))
        assert tuple(plain.sequences[0]) == interval.ids


def test_bias_of_a_word_of_two_tokens_acts_on_the_last_one() -> None:
    model = _model()
    first = core.run(model, _request(do_sample=True, keyed_noise=True)).sequences[0]
    atlas = core.map_setting(model, _request(), "bias", word=[first[0], 17], low=0, high=60)
    assert atlas[-1].ids[:2] == (first[0], 17)
    assert tuple(core.run(model, atlas.request_at(59.0)).sequences[0]) == atlas.at(59.0).ids


@pytest.mark.parametrize(
    ("settings", "setting", "word"),
    [
        ({"num_beams": 2}, "temperature", "Beam"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "top_p", None),
        ({"prompt_lookup_num_tokens": 3}, "temperature", "lookup"),
        ({"max_time": 5.0}, "temperature", "time"),
        ({"mirostat_tau": 2.0}, "temperature", "mirostat_tau"),
        ({"synthid_length": 5}, "temperature", "synthid_length"),
        ({"xtc_probability": 0.5}, "temperature", "xtc_probability"),
        ({"dynatemp_high": 1.5}, "guidance_scale", "dynatemp_high"),
        ({"top_h": 0.4}, "temperature", "top_h"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(
    settings: Mapping[str, object], setting: str, word: str | None
) -> None:
    if word is None:  # sampling switches contrastive search off
        assert _map(models.shared("llama"), _request(tokens=2, **settings), setting).is_complete
        return
    with pytest.raises(core.errors.StrategyError) as refused:
        _map(models.shared("llama"), _request(**settings), setting)
    assert word.lower() in refused.value.cause.lower()
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"setting": "num_beams"}, "setting"), ({"low": 1.0, "high": 0.5}, "high"), ({"low": -1.0}, "low"),
        ({"high": math.nan}, "high"), ({"setting": "top_k", "high": 2.5}, "high"), ({"setting": "bias"}, "word"),
        ({"word": [3]}, "word"), ({"max_passes": 0}, "max_passes"), ({"progress": 3}, "progress"),
        ({"cancel": 1}, "cancel"),
    ],
)  # fmt: skip
def test_invalid_argument_is_refused(arguments: Mapping[str, Any], parameter: str) -> None:
    with pytest.raises(core.errors.ParameterError) as refused:
        core.map_setting(models.shared("llama"), _request(), **arguments)
    assert refused.value.parameter == parameter


def test_atlas_as_table_has_one_row_per_interval() -> None:
    atlas = _map(_model(), _request(tokens=3), "temperature")
    table = atlas.to_dataframe()
    assert len(table) == len(atlas)
    assert list(table["high"]) == [interval.high for interval in atlas]
    assert "<table" in atlas._repr_html_()
    with pytest.raises(core.errors.ParameterError):
        atlas.at(3.0)


@pytest.mark.parametrize("setting", ["temperature", "top_k", "guidance_scale"])
def test_flip_map_equals_what_a_run_chooses_after_the_same_text(setting: str) -> None:
    model, request = _model(), _request()
    ids = core.run(model, request.with_settings({"do_sample": True, "keyed_noise": True})).sequences[0]
    flips = core.map_flips(model, request, ids, setting)
    assert flips.is_complete
    assert [token.id for token in flips] == ids
    for value in (2, 3) if setting == "top_k" else (0.4, 1.3, 1.9):
        for token in flips:
            begun = request.with_settings({"do_sample": True, "keyed_noise": True, setting: value, "max_new_tokens": 1})
            alone = core.run(model, replace(begun, beginning=tuple(ids[: token.position]))).sequences[0][0]
            assert token.at(value).id == alone
            assert token.flips_at(value) == (alone != token.id)
    assert all(one.segments[0].low == flips.low and one.segments[-1].high == flips.high for one in flips)
    assert all(a.high == b.low and a.id != b.id for one in flips for a, b in pairwise(one.segments))


@pytest.mark.parametrize("setting", ["temperature", "top_k"])
def test_flip_map_with_realigned_noise_equals_the_twin_after_the_same_text(setting: str) -> None:
    model, request = _model(), _request().with_settings({"do_sample": True, "keyed_noise": True})
    for value in (2, 3) if setting == "top_k" else (0.4, 1.9):
        twin = core.twin(request, request.with_settings({setting: value}), model=model, realign=True)
        flips = core.map_flips(model, request, twin.ids[0], setting, realign=True)
        assert [token.at(value).id for token in flips] == [token.other_id for token in twin]
        assert flips.flips_at(value) == [token.position for token in twin if token.flips]
    by_position = core.map_flips(model, request, twin.ids[0], setting)
    assert [one.segments for one in by_position] != [one.segments for one in flips]


def test_flip_map_of_a_run_flips_nowhere_at_its_own_value() -> None:
    model, request = _model(), _request(temperature=0.7)
    ids = core.run(model, request.with_settings({"do_sample": True, "keyed_noise": True})).sequences[0]
    flips = core.map_flips(model, request, ids)
    assert flips.flips_at(0.7) == []
    assert flips.flips_at(0.01) != []


def test_stopped_flip_map_covers_the_tokens_so_far() -> None:
    model, cancel, done = _model(), threading.Event(), list[int]()

    def stop(count: int) -> None:
        done.append(count)
        if count == 3:
            cancel.set()

    flips = core.map_flips(model, _request(), [5, 6, 7, 8, 9], progress=stop, cancel=cancel)
    assert (len(flips), flips.is_complete, done) == (3, False, [1, 2, 3])


def test_every_varied_setting_can_be_mapped_within_its_range() -> None:
    model = _model()
    settings = core.varied_settings(model.vocabulary)
    assert settings[0].name == "temperature"
    assert {name for name, _ in CASES} <= {one.name for one in settings}
    for one in settings:
        word = {"word": [11]} if one.has_word else {}
        atlas = core.map_setting(model, _request(tokens=2), one.name, one.low, one.high, **word)
        assert (atlas.low, atlas.high) == (one.low, one.high)
        assert one.minimum <= one.low < one.high <= one.maximum
