"""Near misses of a greedy text: predicted from margins and spread, then compared with the other side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from decodescope import core
from decodescope.core.differences.near_misses import MIN_PROBABILITY, flip_probability
from decodescope.core.errors import ComparisonError, ParameterError, StrategyError
from tests.core import tiny as models

REQUEST = core.Request("Once upon a time", {"max_new_tokens": 48}, seed=3)


def test_words_that_flip_in_int4_are_among_the_near_misses(storyteller: core.LoadedModel) -> None:
    """Every hit was foreseen, and the expected number of hits fits the number found."""
    other = core.load("storyteller", weights="int4")
    found = core.near_misses(storyteller, REQUEST, other, calibration_tokens=48)
    assert [row.id for row in found] == core.run(storyteller, REQUEST).sequences[0]
    assert found.hits
    assert all(row.probability >= MIN_PROBABILITY for row in found.hits)
    variance = sum(row.probability * (1 - row.probability) for row in found)
    assert abs(found.expected - len(found.hits)) < 4 * math.sqrt(variance) + 1
    own = core.run(other, REQUEST).sequences[0]
    first = found.first_difference
    assert first is not None
    assert own[:first] == [row.id for row in found][:first]
    assert own[first] != found[first].id
    assert str(len(found.hits)) in found.sentence


def test_cache_with_equal_values_has_no_near_misses(storyteller: core.LoadedModel) -> None:
    found = core.near_misses(storyteller, REQUEST, cache="static", calibration_tokens=64)
    assert found.spread < 1e-3
    assert found.hits == []
    assert found.first_difference is None


def test_near_misses_without_reading_are_predicted_only() -> None:
    model = models.make("llama", scale=1.5)
    request = core.Request(models.prompt(), {"max_new_tokens": 6})
    found = core.near_misses(
        model, request, cache="quantized", cache_options={"nbits": 2, "residual_length": 8, "q_group_size": 8},
        calibration_tokens=24, runs=False,
    )  # fmt: skip
    assert {row.flips for row in found} == {None}
    assert found.spread > 0


def test_flip_probability_follows_the_measured_shifts() -> None:
    shifts = np.array([-0.2, 0.1, 0.3, -0.4])
    assert flip_probability(0.0, shifts) == 0.5
    assert flip_probability(0.25, shifts) == pytest.approx(0.25, abs=0.1)
    assert flip_probability(5.0, shifts) < 1e-6
    assert flip_probability(0.0, np.zeros(4)) == flip_probability(math.inf, shifts) == 0.0


def test_near_misses_of_other_requests_are_refused(storyteller: core.LoadedModel) -> None:
    with pytest.raises(ParameterError, match="Nothing differs"):
        core.near_misses(storyteller, REQUEST)
    with pytest.raises(StrategyError, match="greedy"):
        core.near_misses(storyteller, core.Request("Once", {"do_sample": True}), cache="static")
    with pytest.raises(ComparisonError):
        core.near_misses(storyteller, REQUEST, models.make("llama"))
