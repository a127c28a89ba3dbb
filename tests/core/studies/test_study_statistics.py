"""Statistics of studies against brute force, hand-computed cases and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from decodescope.core.studies import statistics as own
from decodescope.core.studies.text_measures import adjusted_distinct

rng = np.random.default_rng(5)


@pytest.mark.parametrize(("count", "correct", "k"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 2), (7, 3, 5), (4, 1, 4)])
def test_pass_at_k_equals_the_mean_over_all_choices(count: int, correct: int, k: int) -> None:
    texts = [place < correct for place in range(count)]
    brute = np.mean([any(chosen) for chosen in itertools.combinations(texts, k)])
    assert own.pass_at_k(count, correct, k) == pytest.approx(brute)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("scores", [(0.3, 2.0, -1.0, 0.9, 1.5, 0.0), (1.0, 1.0, 0.0, 0.0, 1.0, 2.0)])
def test_best_of_k_equals_the_mean_over_all_choices(scores: tuple[float, ...], k: int) -> None:
    values = (0.0, 1.0, 1.0, 0.0, 0.0, 1.0)
    expected = []
    for chosen in itertools.combinations(range(6), k):
        best = max(scores[place] for place in chosen)
        leaders = [values[place] for place in chosen if scores[place] == best]
        expected.append(sum(leaders) / len(leaders))
    assert own.best_of_k(scores, values, k) == pytest.approx(np.mean(expected))


def test_best_of_k_of_the_scores_is_the_formula_of_order_statistics() -> None:
    """Σ r_(i) C(i−1, k−1) / C(n, k)."""
    scores = sorted(rng.normal(size=9))
    expected = sum(r * math.comb(i, 2) for i, r in enumerate(scores)) / math.comb(9, 3)
    assert own.best_of_k(scores, scores, 3) == pytest.approx(expected)


def test_holm_equals_a_hand_computed_case() -> None:
    assert own.holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02], nan_ok=True)
    assert own.holm([0.6, 0.7]) == [1.0, 1.0]
    assert own.holm([]) == []


@pytest.mark.parametrize("count", [8, 11])
def test_sign_flip_p_equals_scipys_exact_permutation_test(count: int) -> None:
    values = rng.normal(0.4, 1.0, count)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative="two-sided", n_resamples=np.inf
    ).pvalue
    assert own.sign_flip_p(values) == pytest.approx(expected)


def test_sign_flip_p_by_draws_is_near_the_exact_one() -> None:
    values = rng.normal(0.3, 1.0, 20)
    expected = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    ).pvalue
    assert own.sign_flip_p(values) == pytest.approx(expected, abs=0.02)
    assert own.sign_flip_p(np.zeros(9)) == 1.0


def test_interval_of_single_texts_equals_scipys_bca() -> None:
    values = rng.exponential(1.0, 25)
    found = own.estimate_mean({place: [value] for place, value in enumerate(values)})
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(2)
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high), abs=0.03)
    assert found.mean == pytest.approx(values.mean())
    assert found.deviation == pytest.approx(values.std(ddof=1))


def test_bootstrap_of_clusters_has_the_variance_of_its_two_stages() -> None:
    """Var = (variance of the prompts' means + mean variance inside ÷ seeds) ÷ prompts."""
    clusters = [list(rng.normal(mean, 2.0, 4)) for mean in rng.normal(0, 1, 12)]
    drawn = own.cluster_bootstrap(clusters, 40_000, 3)
    expected = (np.var([np.mean(one) for one in clusters]) + np.mean([np.var(one) / 4 for one in clusters])) / 12
    assert drawn.var() == pytest.approx(expected, rel=0.03)
    unequal = own.cluster_bootstrap([[1.0], [3.0, 3.0, 3.0]], 20_000, 3)
    assert set(np.unique(unequal)) == {1.0, 2.0, 3.0}
    assert unequal.mean() == pytest.approx(2.0, abs=0.02)


def test_fewer_than_eight_prompts_have_no_interval_and_no_p() -> None:
    few = {prompt: {0: float(prompt)} for prompt in range(7)}
    found = own.estimate_mean({prompt: list(one.values()) for prompt, one in few.items()})
    assert found == own.MeanEstimate(3.0, None, None, 7, 7, pytest.approx(np.std(range(7), ddof=1)))
    compared = own.difference(few, {prompt: {0: 0.0} for prompt in few})
    assert compared is not None
    assert (compared.p, compared.estimate.low) == (None, None)
    assert own.estimate_mean({}) is None


def test_equal_values_have_an_interval_without_width() -> None:
    found = own.estimate_mean({prompt: [2.0, 2.0] for prompt in range(9)})
    assert found is not None
    assert (found.mean, found.low, found.high) == (2.0, 2.0, 2.0)


def test_prompt_with_more_seeds_has_the_weight_of_one() -> None:
    found = own.estimate_mean({"a": [0.0] * 9, "b": [1.0]})
    assert found is not None
    assert (found.mean, found.prompts, found.texts) == (0.5, 2, 10)


def test_differences_are_paired_by_seed() -> None:
    values = {"a": {1: 5.0, 2: 7.0}, "b": {1: 1.0}, "c": {3: 4.0, 4: 6.0}, "d": {1: 1.0}}
    baseline = {"a": {2: 1.0, 1: 2.0}, "b": {1: 0.0, 2: 2.0}, "c": {1: 1.0, 2: 2.0}}
    assert own.paired_differences(values, baseline) == {"a": [3.0, 6.0], "b": [1.0, -1.0], "c": [3.5]}


def test_paired_difference_is_found_where_prompts_differ_more() -> None:
    level = rng.normal(0, 10, 20)
    base = {place: {0: value} for place, value in enumerate(level)}
    better = {place: {0: value + 0.5 + rng.normal(0, 0.1)} for place, value in enumerate(level)}
    found = own.difference(better, base)
    assert found is not None
    assert found.p is not None
    assert found.p < 0.001
    assert found.estimate.low is not None
    assert found.estimate.low > 0.4


def test_prompts_for_half_width_is_the_normal_formula() -> None:
    assert own.prompts_for_half_width(1.0, 0.196) == 100
    assert own.prompts_for_half_width(0.001, 1.0) == own.MIN_PROMPTS


def test_majority_counts_missing_answers_as_a_class() -> None:
    vote = own.majority([None, None, None, "7", "7"], ["7"])
    assert (vote.answer, vote.share, vote.correct) == (None, 0.6, 0.0)
    tie = own.majority(["3", "7", "7", "3"], ["7"])
    assert (tie.share, tie.correct) == (0.5, 0.5)
    assert own.majority(["3"]).correct is None


@pytest.mark.parametrize(("first", "second"), [(5, 1), (3, 3), (10, 2), (1, 0)])
def test_confidence_of_the_leader_is_the_beta_distribution(first: int, second: int) -> None:
    assert own.leader_confidence(first, second) == pytest.approx(stats.beta.sf(0.5, first + 1, second + 1))


def test_vote_accuracy_equals_the_mean_of_the_majorities() -> None:
    answers = {prompt: ["1", "1", "2"] if prompt < 6 else ["2", "2", "1"] for prompt in range(10)}
    found = own.vote_accuracy(answers, {prompt: ["1"] for prompt in range(10)})
    assert found is not None
    assert found.mean == 0.6
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.6 < found.high


def test_adjusted_distinct_does_not_fall_with_the_length() -> None:
    short, long = rng.integers(50, size=(2000, 10)), rng.integers(50, size=(2000, 200))
    for texts in (short, long):
        assert np.mean([adjusted_distinct(list(text), 50) for text in texts]) == pytest.approx(1.0, abs=0.01)
    assert adjusted_distinct([1, 1, 2], 2) == pytest.approx(2 / (2 * (1 - 0.5**3)))
    assert adjusted_distinct([], 2) is None
    assert adjusted_distinct([1], 0) is None


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "seeds", "inside"), [(30, 1, 0.0), (12, 1, 0.0), (30, 4, 0.2), (30, 4, 2.0)])
def test_intervals_contain_the_true_mean_as_often_as_they_claim(prompts: int, seeds: int, inside: float) -> None:
    """1,000 studies with skewed values. With a dozen prompts, BCa intervals hold the mean a little less often;
    resampling seeds too makes them wider where texts of a prompt differ.
    """
    generator, hits, studies = np.random.default_rng(7), 0, 1000
    for number in range(studies):
        level = generator.gamma(4.0, 1.0, prompts)
        values = {p: list(level[p] + generator.normal(0, inside, seeds)) for p in range(prompts)}
        found = own.estimate_mean(values, 1000, number)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 4.0 <= found.high
    assert (0.87 if prompts < 20 else 0.92) <= hits / studies <= 0.995


@pytest.mark.slow
def test_p_values_without_a_difference_are_uniform() -> None:
    generator = np.random.default_rng(8)
    found = [own.sign_flip_p(generator.normal(0, 1, 12)) for _ in range(600)]
    assert stats.kstest(found, "uniform").pvalue > 0.01
