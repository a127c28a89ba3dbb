"""Rules for verifying drafts: the emitted distribution against brute force, and the sequential test."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy import stats

from decodescope import core
from decodescope.core.decoding.speculation.tree import DraftTree, DraftTrial
from decodescope.core.decoding.speculation.verification import AcceptanceRng, verify_sampled
from decodescope.core.differences.verification_effect import (
    ENSEMBLE_WEIGHT,
    RULES,
    TYPICAL_FACTOR,
    TYPICAL_THRESHOLD,
    emitted_by_trials,
    total_variation,
)
from decodescope.core.errors import ParameterError

P, Q = (0.5, 0.3, 0.15, 0.05), (0.1, 0.2, 0.3, 0.4)


def _brute_force(rule: str, p: Sequence[float], q: Sequence[float]) -> list[float]:
    """Add up every draft, both outcomes of its test, and every replacement, as the rules are worded."""
    emitted = [0.0] * len(p)
    left = [max(0.0, one - other) for one, other in zip(p, q, strict=True)]
    residual = [one / sum(left) for one in left]
    likeliest = max(range(len(q)), key=q.__getitem__)
    entropy = -sum(one * math.log(one) for one in p)
    for draft, chance in enumerate(q):
        if rule in ("likeliest_draft", "likeliest_as_sampled"):
            chance = float(draft == likeliest)
        match rule:
            case "sampled" | "likeliest_as_sampled":
                accepted, other = min(1.0, p[draft] / q[draft]), residual
            case "likeliest_draft":
                rest = 1 - p[draft]
                accepted, other = p[draft], [0.0 if n == draft else one / rest for n, one in enumerate(p)]
            case "ensemble":
                accepted = min(1.0, 1 - ENSEMBLE_WEIGHT + ENSEMBLE_WEIGHT * p[draft] / q[draft])
                other = residual
            case _:
                threshold = min(TYPICAL_THRESHOLD, TYPICAL_FACTOR * math.exp(-entropy))
                accepted, other = float(p[draft] > threshold), list(p)
        emitted[draft] += chance * accepted
        for token, one in enumerate(other):
            emitted[token] += chance * (1 - accepted) * one
    return emitted


@pytest.mark.parametrize("rule", RULES)
def test_emitted_distribution_equals_brute_force(rule: str) -> None:
    found = core.emitted_distribution(P, Q, rule)
    assert found == pytest.approx(_brute_force(rule, P, Q), abs=1e-12)
    assert found.sum() == pytest.approx(1.0)
    is_equal = total_variation(found, np.array(P)) < 1e-12
    assert is_equal is RULES[rule].is_lossless


def test_ensemble_weight_loses_its_part_of_the_distance() -> None:
    """ν = w p + (1 − w) q, so TV(ν, p) = (1 − w) TV(p, q)."""
    p, q = np.array(P), np.array(Q)
    found = core.emitted_distribution(P, Q, "ensemble")
    assert found == pytest.approx(ENSEMBLE_WEIGHT * p + (1 - ENSEMBLE_WEIGHT) * q)
    assert total_variation(found, p) == pytest.approx((1 - ENSEMBLE_WEIGHT) * total_variation(p, q))


def test_emitted_distribution_of_own_verification_fits_its_tokens() -> None:
    """χ² of `verify_sampled`, draft for draft."""
    p, q = torch.tensor(P), torch.tensor(Q)
    generator = torch.Generator().manual_seed(5)
    rng, counts = AcceptanceRng(generator), np.zeros(len(P))
    for draft in torch.multinomial(q, 3000, replacement=True, generator=generator).tolist():
        trials: dict[int, list[DraftTrial]] = {0: [(1, 0)]}
        tree = DraftTree([0, draft], [-1, 0], [0, 1], [-1, 0], [1.0, float(q[draft])], trials, {(0, 0): q})
        verdict = verify_sampled(tree, torch.stack([p, p]), rng, generator)
        counts[draft if verdict.path else verdict.extra_token] += 1
    assert stats.chisquare(counts, core.emitted_distribution(P, Q) * counts.sum()).pvalue > 1e-4


def test_several_drafts_at_a_position_are_lossless() -> None:
    third = np.array([0.4, 0.4, 0.1, 0.1])
    assert emitted_by_trials(np.array(P), [np.array(Q), third]) == pytest.approx(np.array(P))


def test_rule_effects_average_over_steps() -> None:
    found = core.rule_effects([(P, Q), (P, P)])
    rows = {row.rule: row for row in found}
    assert set(rows) == set(RULES)
    assert rows["sampled"].distance == pytest.approx(0.0, abs=1e-12)
    assert rows["sampled"].accepted == pytest.approx((sum(map(min, P, Q)) + 1) / 2)
    assert rows["likeliest_as_sampled"].largest == max(found.distances["likeliest_as_sampled"]) > 0.05


def test_sequential_test_rejects_other_tokens_and_seldom_the_right_ones() -> None:
    random = np.random.default_rng(3)
    false_alarms = 0
    for _ in range(100):
        test = core.SequentialTest(0.05)
        false_alarms += any([test.add(int(token), P) for token in random.choice(4, 150, p=P)])
    assert false_alarms <= 12
    other = core.SequentialTest(0.05)
    for token in random.choice(4, 300, p=core.emitted_distribution(P, Q, "likeliest_as_sampled")):
        other.add(int(token), P)
    assert other.is_rejected
    assert other.p_value < 0.05


def test_sequential_test_wealth_is_a_fair_game() -> None:
    """After any past, the expected factor of the wealth is 1."""
    test = core.SequentialTest()
    for token in (0, 3, 3, 1):
        test.add(token, P)
    before, factor = test.log_wealth, 0.0
    for token, chance in enumerate(P):
        again = core.SequentialTest()
        for past in (0, 3, 3, 1, token):
            again.add(past, P)
        factor += chance * math.exp(again.log_wealth - before)
    assert factor == pytest.approx(1.0)


def test_values_that_are_no_distribution_are_refused() -> None:
    with pytest.raises(ParameterError, match="no probability distribution"):
        core.emitted_distribution((0.5, 0.2), (0.5, 0.5))
    with pytest.raises(ParameterError):
        core.emitted_distribution(P, Q, "wishful")
    with pytest.raises(ParameterError, match="no steps"):
        core.rule_effects([])
    with pytest.raises(ParameterError, match="outside"):
        core.SequentialTest().add(9, P)
