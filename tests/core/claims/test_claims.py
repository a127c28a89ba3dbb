"""Claims: every one is complete, verdicts follow the interval, and a difference that is not there is not found."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Hashable, Iterator

import numpy as np
import pytest

from decodescope import core
from decodescope.core import claims
from decodescope.core.claims.claim_outcome import compare, unseen_share, verdict_of
from decodescope.core.claims.prompt_sets import claim_prompts
from decodescope.core.common.claim import GREEDY_CELL, SAMPLING_CELL, Claim, ClaimCell, ClaimMeasure, ClaimRun
from decodescope.core.errors import PluginError, StudyError
from decodescope.core.parameter import check_values
from decodescope.core.plugins.plugin_loading import check_entry
from decodescope.core.studies.statistics import MIN_PROMPTS, MeanEstimate
from decodescope.core.system.plugin_code import PluginLocation
from tests.long import slow

Values = dict[Hashable, dict[Hashable, float]]
PROMPTS = [f"Once upon a time, there was a {animal}" for animal in "fox cat dog owl hen pig cow ant".split()]
PLAIN = Claim(
    "plain", "Plain", "It does.", "It does.", "Nobody 2026, Nothing", "https://example.org", GREEDY_CELL, SAMPLING_CELL,
    "repetition", "higher", 0.1, max_new_tokens=8,
)  # fmt: skip
REPETITION = claims.MEASURES["repetition"]


@pytest.fixture
def with_strategy() -> Iterator[Callable[..., None]]:
    """Add a strategy as a plug-in does."""

    def add(**fields: object) -> None:
        entry = dataclasses.replace(core.strategies.registry["greedy"], aliases=(), **fields)
        core.strategies.registry.set_plugin_entries([entry])

    yield add
    core.strategies.registry.set_plugin_entries(())


# --- the claims


def test_there_are_claims_about_strategies_processors_and_caches() -> None:
    kinds = [entry.kind for entry in claims.all_claims().values()]
    assert len(kinds) >= 12
    assert set(kinds) == {"strategy", "processor", "cache"}


@pytest.mark.parametrize("name", claims.all_claims())
def test_claim_is_complete_and_can_be_tested(name: str) -> None:
    entry = claims.all_claims()[name]
    claim = entry.claim
    assert claim.plain.endswith(".")
    assert claim.exact.endswith(".")
    assert claim.address.startswith("https://")
    assert any(part.isdigit() and len(part) == 4 for part in claim.source.replace(",", " ").split()), "no year"
    assert claim.margin > 0
    assert entry.subject
    measure = claims.measure_of(claim)
    assert measure.help.endswith(".")
    for cell in (claim.baseline, claim.tested):
        strategy = core.strategies.select(cell.strategy, cell.settings, cell.uses_draft)
        check_values(strategy.parameters, {**cell.settings, "max_new_tokens": claim.max_new_tokens})
        unknown = set(cell.settings) - set(strategy.parameter_names) - set(strategy.flags)
        assert not unknown, f"{strategy.name} does not use {unknown}"
        cache = core.caches.registry[cell.cache]
        check_values(cache.parameters, cell.cache_settings)
        assert set(cell.cache_settings) <= {one.name for one in cache.parameters}
    assert claim.prompts != "facts" or claim.baseline_at_least is not None, "a model may know no answer"


def test_claim_of_an_added_strategy_is_found(with_strategy: Callable[..., None]) -> None:
    with_strategy(name="own", title="Own", claims=(PLAIN,))
    entry = claims.named_claim("plain")
    assert (entry.kind, entry.entry, entry.subject) == ("strategy", "own", "Own")
    assert claims.claims_of("own") == (entry,)


def test_claim_with_a_name_that_exists_gets_the_name_of_its_entry(with_strategy: Callable[..., None]) -> None:
    with_strategy(name="own", order=1000, claims=(dataclasses.replace(PLAIN, name="greedy-repeats"),))
    assert claims.named_claim("own/greedy-repeats").entry == "own"
    assert claims.named_claim("greedy-repeats").entry == "greedy"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([PLAIN], "not a tuple"),
        ((3,), "not an instance of Claim"),
        ((dataclasses.replace(PLAIN, margin=0.0),), "above 0"),
        ((dataclasses.replace(PLAIN, source=""),), "source"),
        ((dataclasses.replace(PLAIN, expects="nicer"),), "nicer"),
        ((dataclasses.replace(PLAIN, tested="greedy"),), "ClaimCell"),
    ],
)
def test_plug_in_with_an_unusable_claim_is_refused(given: object, reason: str) -> None:
    entry = dataclasses.replace(core.strategies.registry["greedy"], name="own", aliases=(), claims=given)
    with pytest.raises(PluginError, match=reason):
        check_entry("strategy", entry, PluginLocation("own", "own.py", 1))


def test_unknown_claim_is_refused_with_a_similar_name() -> None:
    with pytest.raises(StudyError, match="greedy-repeats"):
        claims.named_claim("greedy-repeat")


def test_unknown_measure_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(StudyError, match="log_probability"):
        claims.measure_of(dataclasses.replace(PLAIN, measure="beauty"))


def test_prompts_are_different_and_enough_for_an_interval() -> None:
    for kind in ("stories", "repetitive", "facts"):
        prompts = claim_prompts(kind)
        assert len({one.text for one in prompts}) == len(prompts) >= 2 * MIN_PROMPTS - 1
    assert all(one.answers for one in claim_prompts("facts"))


def test_model_with_chinese_tokens_gets_chinese_stories() -> None:
    chinese = claim_prompts("stories", lambda text: sum(1 if ord(sign) > 255 else 2 for sign in text))
    english = claim_prompts("stories", lambda text: sum(3 if ord(sign) > 255 else 1 for sign in text) // 4)
    assert not chinese[0].text.isascii()
    assert english[0].text.isascii()


# --- measures, by hand


def make_run(ids: list[int], **more: object) -> ClaimRun:
    text = {"text": "a b", "ids": ids, "tokens": len(ids), "log_probability": -2.0, **more}
    return ClaimRun([text], {"tokens_per_target_pass": 2.5, "cache_peak_bytes": 50})


def value(name: str, run: ClaimRun) -> float | None:
    return claims.MEASURES[name].compute(run)


def test_measures_agree_with_hand_computed_values() -> None:
    run = make_run([1, 2, 3, 4, 1, 2, 3, 4])
    assert value("repetition", run) == pytest.approx(1 / 5)  # 5 passages, of which the last one occurred before
    assert value("text_log_probability", run) == pytest.approx(-16.0)
    assert value("length", run) == 8
    assert value("tokens_per_pass", run) == 2.5
    assert value("surprise_distance", run._replace(target=1.0)) == pytest.approx(2 / np.log(2) - 1)
    assert value("cache_share", run._replace(baseline=run._replace(metrics={"cache_peak_bytes": 200}))) == 0.25
    assert value("distinct_2", run._replace(texts=[{"ids": [1, 2, 3]}, {"ids": [1, 2]}])) == pytest.approx(2 / 3)


def test_same_text_compares_with_the_baseline() -> None:
    run = make_run([1, 2])
    assert value("same_text", run) == 1
    assert value("same_text", run._replace(baseline=make_run([1, 2]))) == 1
    assert value("same_text", run._replace(baseline=make_run([1, 3]))) == 0


def test_answer_counts_only_as_a_whole_word() -> None:
    run = make_run([1])._replace(answers=("ice",))
    assert value("right_answer", run._replace(texts=[{"text": " Nice."}])) == 0
    assert value("right_answer", run._replace(texts=[{"text": " It is Ice."}])) == 1


def test_majority_is_the_most_frequent_first_word_and_a_tie_counts_half() -> None:
    run = ClaimRun([{"text": one} for one in (" Rome.", "rome", " Paris")], {}, ("Rome",))
    assert value("majority_right", run) == 1
    assert value("majority_right", run._replace(texts=[{"text": "Rome"}, {"text": "Oslo"}])) == 0.5
    assert value("majority_right", run._replace(texts=[{"text": " ?"}])) == 0


# --- verdicts


def judged(expects: str, low: float | None, high: float | None, baseline: float = 0.5, **more: object) -> tuple:
    claim = dataclasses.replace(PLAIN, expects=expects, **more)
    found = MeanEstimate(((low or 0) + (high or 0)) / 2, low, high, 8, 8)
    return verdict_of(claim, REPETITION, baseline, found)


@pytest.mark.parametrize(
    ("expects", "low", "high", "verdict", "reason"),
    [
        ("higher", 0.11, 0.3, "holds", ""),
        ("higher", 0.05, 0.3, "cannot_be_told", "wide"),
        ("higher", -0.02, 0.09, "does_not_hold", "small"),
        ("higher", -0.3, -0.2, "does_not_hold", "opposite"),
        ("lower", -0.3, -0.11, "holds", ""),
        ("lower", -0.3, -0.05, "cannot_be_told", "wide"),
        ("lower", -0.05, 0.02, "does_not_hold", "small"),
        ("lower", 0.2, 0.3, "does_not_hold", "opposite"),
        ("equal", -0.09, 0.09, "holds", ""),
        ("equal", -0.2, 0.05, "cannot_be_told", "wide"),
        ("equal", 0.11, 0.2, "does_not_hold", "different"),
        ("equal", -0.2, -0.11, "does_not_hold", "different"),
        ("higher", None, None, "cannot_be_told", "few_prompts"),
    ],
)
def test_verdict_follows_the_interval_and_the_margin(
    expects: str, low: float | None, high: float | None, verdict: str, reason: str
) -> None:
    assert judged(expects, low, high) == (verdict, reason)


def test_baseline_at_the_limit_of_the_measure_cannot_be_told() -> None:
    assert judged("lower", -0.02, -0.01, baseline=0.05) == ("cannot_be_told", "no_room")
    assert judged("higher", 0.01, 0.02, baseline=0.95) == ("cannot_be_told", "no_room")


def test_baseline_below_the_required_one_cannot_be_told() -> None:
    assert judged("higher", 0.0, 0.0, 0.05, baseline_at_least=0.1) == ("cannot_be_told", "low_baseline")


def studies(true_difference: float, count: int, prompts: int = 16) -> Iterator[tuple[Values, Values]]:
    """Yield values of both cells: prompts differ, and so do the two seeds of each."""
    generator = np.random.default_rng(7)
    for _ in range(count):
        level = generator.beta(2, 5, prompts)
        cells: tuple[Values, Values] = ({}, {})
        for cell, shift in zip(cells, (0.0, true_difference), strict=True):
            for prompt in range(prompts):
                cell[prompt] = {seed: float(level[prompt] + shift + generator.gamma(2, 0.06)) for seed in range(2)}
        yield cells


@pytest.mark.parametrize(("expects", "count"), [slow(("higher", 300)), slow(("lower", 300)), ("lower", 100)])
def test_same_setting_twice_is_hardly_ever_said_to_differ(expects: str, count: int) -> None:
    claim = dataclasses.replace(PLAIN, expects=expects, margin=0.02)
    measure = dataclasses.replace(REPETITION, minimum=None, maximum=None)
    verdicts = [verdict_of(claim, measure, 0.5, compare(*cells))[0] for cells in studies(0.0, count)]
    assert verdicts.count("holds") <= 0.05 * len(verdicts)


@pytest.mark.slow
def test_difference_of_exactly_the_margin_is_hardly_ever_said_to_exceed_it() -> None:
    claim = dataclasses.replace(PLAIN, margin=0.05)
    measure = dataclasses.replace(REPETITION, maximum=None)
    verdicts = [verdict_of(claim, measure, 0.5, compare(*cells))[0] for cells in studies(0.05, 300)]
    assert verdicts.count("holds") <= 0.08 * len(verdicts)


def test_large_difference_is_found() -> None:
    claim = dataclasses.replace(PLAIN, margin=0.05)
    verdicts = [verdict_of(claim, REPETITION, 0.3, compare(*cells))[0] for cells in studies(0.2, 50)]
    assert verdicts.count("holds") >= 0.9 * len(verdicts)


def test_share_of_prompts_that_may_differ_is_the_exact_binomial_limit() -> None:
    assert (1 - unseen_share(20)) ** 20 == pytest.approx(0.05)
    assert unseen_share(20) == pytest.approx(3 / 20, abs=0.02)


# --- trials


def test_trial_compares_the_texts_of_both_cells(storyteller: core.LoadedModel) -> None:
    reports: list[claims.ClaimProgress] = []
    outcome = core.try_claim(storyteller, PLAIN, prompts=PROMPTS, seconds=600, progress=reports.append)
    assert (outcome.prompts, outcome.planned_prompts, len(reports)) == (8, 8, 8)
    assert outcome.low is not None
    example = outcome.examples[0]
    for cell, text in ((GREEDY_CELL, example.baseline_text), (SAMPLING_CELL, example.tested_text)):
        request = core.Request(example.prompt, {**cell.settings, "max_new_tokens": 8}, strategy=cell.strategy)
        assert core.run(storyteller, request).texts == [text]
    assert claims.outcome_from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def test_greedy_decoding_twice_is_equal_and_the_text_says_how_sure_that_is(storyteller: core.LoadedModel) -> None:
    claim = dataclasses.replace(PLAIN, tested=GREEDY_CELL, measure="same_text", expects="equal")
    outcome = core.try_claim(storyteller, claim, prompts=PROMPTS, seconds=600)
    assert (outcome.verdict, outcome.low, outcome.high) == ("holds", 0.0, 0.0)
    assert "31 %" in claims.verdict_reason(outcome, claim, claims.MEASURES["same_text"])


def test_stopped_trial_is_judged_by_its_finished_prompts(storyteller: core.LoadedModel) -> None:
    cancel = threading.Event()

    def stop(progress: claims.ClaimProgress) -> None:
        if progress.done == 2:
            cancel.set()

    outcome = core.try_claim(storyteller, PLAIN, prompts=PROMPTS, seconds=600, cancel=cancel, progress=stop)
    assert (outcome.prompts, outcome.is_stopped) == (2, True)
    assert (outcome.verdict, outcome.reason, outcome.low) == ("cannot_be_told", "few_prompts", None)


def test_trial_without_time_says_that_it_finished_too_few_prompts(storyteller: core.LoadedModel) -> None:
    outcome = core.try_claim(storyteller, PLAIN, prompts=PROMPTS, seconds=1e-6)
    assert (outcome.prompts, outcome.verdict, outcome.reason) == (0, "cannot_be_told", "few_prompts")


def test_slow_model_gets_shorter_texts(storyteller: core.LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 10))
    monkeypatch.setattr("decodescope.core.claims.claim_trial.time.monotonic", lambda: float(next(clock)))
    claim = dataclasses.replace(PLAIN, max_new_tokens=64)
    outcome = core.try_claim(storyteller, claim, prompts=PROMPTS, seconds=5_000)
    assert 16 <= outcome.max_new_tokens < 64


def test_measure_of_a_plug_in_that_fails_is_named(storyteller: core.LoadedModel) -> None:
    broken = ClaimMeasure("broken", "Broken", "Fails.", lambda run: 1 / 0)
    with pytest.raises(StudyError, match="ZeroDivisionError"):
        core.try_claim(storyteller, dataclasses.replace(PLAIN, measure=broken), prompts=PROMPTS, seconds=600)


def test_claim_about_drafts_names_a_model_without_a_draft_model() -> None:
    window = core.load("storyteller-window")
    with pytest.raises(StudyError, match="draft model"):
        core.try_claim(window, "drafts-save-passes")


def test_claim_about_prediction_heads_takes_the_bundled_head_that_fits(storyteller: core.LoadedModel) -> None:
    outcome = core.try_claim(storyteller, "heads-save-passes", prompts=PROMPTS[:2], seconds=600)
    assert outcome.tested_mean > 1.5 > outcome.baseline_mean
    draft = core.load("storyteller-draft")
    with pytest.raises(StudyError, match="cannot be tested on storyteller-draft"):
        core.try_claim(draft, "heads-save-passes")


def test_model_that_does_not_continue_texts_is_refused() -> None:
    with pytest.raises(StudyError, match="continue"):
        core.try_claim(core.load("summarizer"), PLAIN)


def test_reading_through_the_exact_cache_gives_the_log_probability_of_the_run(storyteller: core.LoadedModel) -> None:
    cell = ClaimCell("Exact")
    claim = dataclasses.replace(
        PLAIN, baseline=cell, tested=cell, measure="read_log_probability", expects="equal", target=0.0,
        max_new_tokens=12,
    )  # fmt: skip
    outcome = core.try_claim(storyteller, claim, prompts=PROMPTS[:1], seconds=600)
    settings = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "min_new_tokens": 12}
    run = core.run(storyteller, core.Request(PROMPTS[0], {**settings, "max_new_tokens": 12}, strategy="sampling"))
    scored = core.score(storyteller, run.sequences[0], given=core.encode(storyteller, PROMPTS[0]))
    expected = np.mean([token.raw_log_probability for token in scored])
    assert outcome.baseline_mean == pytest.approx(expected, abs=1e-4)
    assert outcome.difference == 0
