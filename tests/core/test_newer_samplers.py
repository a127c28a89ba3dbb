"""DRY, XTC, top-nσ, mirostat 2 and dynamic temperature: hand-computed vectors, chi-square tests, combinations."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from decodescope import core
from decodescope.core.decoding.processor_pipeline import build_pipeline
from decodescope.core.errors import ParameterError
from decodescope.core.processors import Context, registry
from decodescope.core.processors.dry_multiplier import MIN_FOLLOWED, find_repeats
from decodescope.core.processors.dynatemp_high import temperatures
from decodescope.core.processors.mirostat_tau import Mirostat
from decodescope.core.processors.score_stats import likely_tokens
from decodescope.core.processors.xtc_probability import tokens_to_remove
from tests.core import tiny

INFINITY = float("inf")
NO_IDS = torch.zeros(1, 0, dtype=torch.long)


def stage(name: str, start: int = 2, dice: float = 0.0, **options: Any) -> Any:
    """Return the function on scores of one enabled option."""
    model, settings = tiny.shared("llama"), {"do_sample": True, **options}
    ids, eos = torch.tensor([[5, 6]]), torch.tensor([2])
    made = Context(model, settings, start, 12, ids, eos, 1, lambda rows: torch.full((rows,), dice))
    (found,) = [found for found in build_pipeline(made).stages if found.name == name]
    return found.process


def logits(*shares: float) -> torch.Tensor:
    return torch.tensor([shares]).log()


def kept(scores: torch.Tensor) -> list[int]:
    return scores[0].isfinite().nonzero().flatten().tolist()


def test_top_n_sigma_matches_a_manual_computation() -> None:
    """Scores 4, 2, 0, −2: mean 1, deviation √5; nσ below 4 at n = 1 is 1.76, at 0.5 it is 2.88."""
    scores = torch.tensor([[4.0, 2.0, 0.0, -2.0]])
    assert kept(stage("top_n_sigma", top_n_sigma=1.0)(NO_IDS, scores)) == [0, 1]
    assert kept(stage("top_n_sigma", top_n_sigma=0.5)(NO_IDS, scores)) == [0]
    assert kept(stage("top_n_sigma", top_n_sigma=2.0)(NO_IDS, scores)) == [0, 1, 2]


def test_top_n_sigma_ignores_banned_tokens_and_precedes_temperature() -> None:
    scores = torch.tensor([[4.0, 2.0, 0.0, -2.0, -INFINITY]])
    assert kept(stage("top_n_sigma", top_n_sigma=1.0)(NO_IDS, scores)) == [0, 1]
    order = list(registry)
    assert (
        order.index("top_n_sigma") < order.index("temperature") < order.index("top_k") < order.index("xtc_probability")
    )
    assert order.index("repetition_penalty") < order.index("dry_multiplier") < order.index("top_n_sigma")


def test_the_histogram_of_top_n_sigma_holds_every_finite_score() -> None:
    scores = torch.tensor([[4.0, 2.0, 0.0, -INFINITY, -2.0]])
    process = stage("top_n_sigma", top_n_sigma=1.0)
    cut = process(NO_IDS, scores)
    reported = process.make_observer()(0, scores[0], cut[0], 0)().spread
    assert (reported.best, reported.lowest) == (4.0, -2.0)
    assert [place for place, count in enumerate(reported.counts) if count] == [0, 10, 21, 31]
    assert sum(reported.counts) == 4


def test_dynamic_temperature_matches_a_manual_computation() -> None:
    even, sure = logits(0.25, 0.25, 0.25, 0.25), torch.tensor([[50.0, 0.0, 0.0, 0.0]])
    half = logits(0.5, 0.5, 1e-30, 1e-30)
    assert temperatures(even, 0.5, 1.5, 1.0) == [pytest.approx(1.5)]
    assert temperatures(sure, 0.5, 1.5, 1.0) == [pytest.approx(0.5)]
    assert temperatures(half, 0.5, 1.5, 1.0) == [pytest.approx(1.0)]  # ln 2 of ln 4
    assert temperatures(half, 0.5, 1.5, 2.0) == [pytest.approx(0.75)]
    two_left = torch.tensor([[0.0, 0.0, -INFINITY, -INFINITY], [0.0, 0.0, 0.0, -INFINITY]])
    assert temperatures(two_left, 0.5, 1.5, 1.0) == [pytest.approx(1.5)] * 2  # as unsure as they can be
    process = stage("dynatemp_high", dynatemp_high=1.5, dynatemp_low=0.5)
    assert torch.allclose(process(NO_IDS, half), half)
    assert torch.allclose(process(NO_IDS, sure), sure / 0.5)


def test_dynamic_temperature_with_low_above_high_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"its upper limit 0\.4 is below its lower limit 0\.5\. Correct"):
        stage("dynatemp_high", dynatemp_high=0.4)


def tokens_above(scores: torch.Tensor, threshold: float) -> list[int]:
    return tokens_to_remove(likely_tokens(scores, threshold, scores.shape[-1]))


def test_xtc_removes_all_but_the_least_likely_top_token() -> None:
    shares = logits(0.4, 0.3, 0.2, 0.1)
    assert tokens_above(shares, 0.15) == [0, 1]
    assert tokens_above(shares, 0.35) == []  # only one token is tokens_above the threshold, so none is removed
    assert tokens_above(shares, 0.5) == []
    assert sorted(tokens_above(torch.zeros(1, 8), 0.125)) == list(range(1, 8))
    process = stage("xtc_probability", xtc_probability=0.5, xtc_threshold=0.25, dice=0.49)
    padded = torch.cat([torch.full((1, 5), 1e-12).log(), shares], -1)  # token 2 ends a text
    assert kept(process(NO_IDS, padded))[-3:] == [6, 7, 8]
    never = stage("xtc_probability", xtc_probability=0.5, xtc_threshold=0.25, dice=0.5)
    assert torch.equal(never(NO_IDS, padded), padded)


def test_extreme_setting_values_keep_the_scores_valid() -> None:
    """A threshold of nearly nothing, a temperature of nearly nothing, a penalty that no float32 holds."""
    shares = logits(0.4, 0.3, 0.2, 0.1)
    assert tokens_above(shares, 5e-324) == [0, 1, 2]
    cold = stage("dynatemp_high", dynatemp_high=1e-300, dynatemp_low=1e-300)(NO_IDS, shares)
    assert cold.softmax(-1).tolist() == [[1.0, 0.0, 0.0, 0.0]]
    heavy = stage("dry_multiplier", dry_multiplier=100.0, dry_base=10.0, dry_allowed_length=1)
    only = torch.full((1, 61), -INFINITY)
    only[0, 7] = 3.0
    assert heavy(torch.full((1, 120), 7), only).softmax(-1)[0, 7] == 1.0


def test_dry_penalty_uses_the_full_length_of_a_long_passage() -> None:
    """400 tokens alike, with distinct powers of 1.01: the next 7 stood behind 399 of them."""
    mild = stage("dry_multiplier", dry_multiplier=0.5, dry_base=1.01)
    after = mild(torch.full((1, 400), 7), torch.zeros(1, 61))
    assert after[0, 7].item() == pytest.approx(-0.5 * 1.01**397, rel=1e-4)
    assert after[0, 8].item() == 0.0


def test_xtc_does_not_remove_the_end_token() -> None:
    process = stage("xtc_probability", xtc_probability=1.0, xtc_threshold=0.25)
    shares = logits(0.1, 0.2, 0.4, 0.3)
    assert torch.equal(process(NO_IDS, shares), shares)


def test_mirostat_matches_a_manual_computation() -> None:
    """τ 1, η 0.5: μ begins at 2 bits; token 2 surprised by 2 bits, so μ becomes 2 − 0.5 · (2 − 1) = 1.5."""
    process = Mirostat(1.0, 0.5)
    shares = logits(0.5, 0.25, 0.25, 1e-9)
    assert kept(process(torch.tensor([[0]]), shares)) == [0, 1, 2]
    assert kept(process(torch.tensor([[0, 2]]), shares)) == [0]
    assert process.mu == [pytest.approx(1.5)]
    process(torch.tensor([[0, 2, 0]]), shares)
    assert process.mu == [pytest.approx(1.5)]  # surprised by exactly 1 bit


def test_mirostat_always_keeps_the_likeliest_token() -> None:
    assert len(kept(Mirostat(0.1, 0.1)(torch.tensor([[0]]), logits(0.26, 0.25, 0.25, 0.24)))) == 1


def test_mirostat_follows_its_rows() -> None:
    process = Mirostat(1.0, 0.5)
    process(torch.tensor([[0], [0]]), torch.cat([logits(0.5, 0.5), logits(0.75, 0.25)]))
    process(torch.tensor([[0, 0], [0, 1]]), torch.cat([logits(0.5, 0.5)] * 2))
    before = process.mu
    process.reorder(torch.tensor([1, 1]))
    assert process.mu == [before[1], before[1]] != before


def passages(text: list[int], breaks: tuple[int, ...] = ()) -> dict[int, int]:
    marked = np.array([place in breaks for place in range(len(text))])
    found: dict[int, int] = {}
    for place, length in find_repeats(np.array(text), marked, MIN_FOLLOWED):
        found[text[place]] = max(length, found.get(text[place], 0))
    return found


def brute_force(text: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for place in range(1, len(text)):
        length = 0
        while length < place and text[place - 1 - length] == text[len(text) - 1 - length]:
            length += 1
        if length:
            found[text[place]] = max(found.get(text[place], 0), min(length, MIN_FOLLOWED))
    return found


def test_dry_finds_the_passage_that_would_go_on() -> None:
    assert passages([1, 2, 3, 9, 1, 2, 3]) == {9: 3}
    assert passages([1, 2, 3, 9, 5, 2, 3]) == {9: 2}
    assert passages([1, 2, 3, 9, 1, 2, 3], breaks=(1, 5)) == {9: 1}  # it does not reach across a break
    assert passages([1, 2, 3, 9, 1, 2, 3], breaks=(6,)) == {}
    assert passages([7, 7, 7]) == {7: 2}
    assert passages([4]) == passages([]) == {}


@pytest.mark.parametrize("seed", range(20))
def test_dry_finds_the_passages_of_brute_force(seed: int) -> None:
    text = np.random.default_rng(seed).integers(0, 3, size=seed * 12).tolist()
    assert passages(text) == brute_force(text)


def test_dry_matches_a_manual_computation() -> None:
    """n = 3, allowed 2: 0.8 · 1.75¹ = 1.4."""
    process = stage("dry_multiplier", dry_multiplier=0.8)
    before = torch.zeros(1, 61)
    after = process(torch.tensor([[11, 12, 13, 19, 11, 12, 13]]), before)
    assert after[0, 19].item() == pytest.approx(-1.4)
    assert after[0].nonzero().flatten().tolist() == [19]
    assert not before.any()
    short = stage("dry_multiplier", dry_multiplier=0.8, dry_allowed_length=4)
    assert not short(torch.tensor([[11, 12, 13, 19, 11, 12, 13]]), before).any()
    near = stage("dry_multiplier", dry_multiplier=0.8, dry_range=3)
    assert not near(torch.tensor([[11, 12, 13, 19, 11, 12, 13]]), before).any()


def test_dry_penalty_of_a_long_repetition_is_finite() -> None:
    process = stage("dry_multiplier", dry_multiplier=0.8)
    assert process(torch.full((1, 900), 7), torch.zeros(1, 61)).isfinite().all()


ON: dict[str, dict[str, Any]] = {
    "dry": {"dry_multiplier": 0.8},
    "xtc": {"xtc_probability": 0.5, "xtc_threshold": 0.02},
    "top-nσ": {"top_n_sigma": 1.0},
    "mirostat": {"mirostat_tau": 3.0},
    "dynatemp": {"dynatemp_high": 1.6, "dynatemp_low": 0.4},
}


@pytest.mark.parametrize("name", ON)
@pytest.mark.parametrize("strategy", ["sampling", "beam_sampling"])
def test_seeded_run_is_reproducible_and_reports_every_stage(name: str, strategy: str) -> None:
    request = core.Request(
        [5, 6, 7], {"max_new_tokens": 12, "min_new_tokens": 12}, strategy=strategy, options=ON[name], seed=3
    )
    model = tiny.shared("llama")
    one, other = core.run(model, request), core.run(model, request)
    assert one.sequences == other.sequences
    if strategy == "sampling":
        reported = [event.funnel for event in one.events if isinstance(event, core.events.TokenChosen)]
        assert all(ON[name].keys() & {stage.name for stage in funnel} for funnel in reported)


def test_texts_of_a_batch_use_xtc_draws_of_their_own_seeds() -> None:
    """Text n of a batch is what a run of its own with the n-th seed writes, with the random numbers of XTC."""
    model = tiny.shared("llama")

    def written(seed: int, texts: int) -> list[Any]:
        config = {"max_new_tokens": 10, "min_new_tokens": 10, "num_return_sequences": texts}
        options = {**ON["xtc"], "seed_each": True}
        return list(core.run(model, core.Request([5, 6], config, "sampling", options, seed=seed)).sequences)

    assert written(4, 3) == [written(4 + n, 1)[0] for n in range(3)]


def test_xtc_samples_follow_its_definition() -> None:
    """Chi-square: with probability ½ the distribution without the top, else the model's own."""
    model = tiny.shared("llama")
    first = core.Request([5, 6, 7], {"max_new_tokens": 1}, strategy="greedy", top_n=61)
    (raw,) = [event for event in core.stream(model, first) if isinstance(event, core.events.TokenChosen)]
    shares = {item.id: item.raw_probability for item in raw.alternatives}
    likely = sorted(shares, key=shares.__getitem__, reverse=True)[:4]
    high, threshold = likely[:3], shares[likely[3]] - 1e-6
    assert 2 not in likely, "the end token would be spared"
    left = 1 - sum(shares[token] for token in high)
    expected = {t: 0.5 * p + (0.0 if t in high else 0.5 * p / left) for t, p in shares.items()}
    runs = 3000
    config = {"max_new_tokens": 1, "num_return_sequences": runs, "top_k": 0}
    options = {"xtc_probability": 0.5, "xtc_threshold": threshold}
    drawn = core.run(model, core.Request([5, 6, 7], config, strategy="sampling", options=options, seed=1, top_n=0))
    seen = Counter(sequence[-1] for sequence in drawn.sequences)
    tokens = [token for token in expected if expected[token] * runs >= 5]
    observed = [seen[token] for token in tokens] + [runs - sum(seen[token] for token in tokens)]
    wanted = [expected[token] * runs for token in tokens]
    wanted.append(runs - sum(wanted))
    assert stats.chisquare(observed, wanted).pvalue > 1e-3


def test_mirostat_keeps_the_target_surprise() -> None:
    model = core.load("storyteller")
    found = {}
    for tau, tokens in ((0.5, 80), (2.0, 250)):
        request = core.Request(
            "Once upon a time", {"max_new_tokens": tokens, "min_new_tokens": tokens, "temperature": 2.0},
            strategy="sampling", options={"mirostat_tau": tau}, seed=2, top_n=1,
        )  # fmt: skip
        events = [e for e in core.stream(model, request) if isinstance(e, core.events.TokenChosen)]
        found[tau] = [_surprise(event) for event in events]
    assert np.mean(found[0.5]) < np.mean(found[2.0])
    assert np.mean(found[2.0]) == pytest.approx(2.0, abs=0.35)


def _surprise(event: Any) -> float:
    """Return the surprise of the drawn token in bits, at temperature 2 before the cut."""
    before, kept_mass = event.probability, event.funnel[-1].mass
    return -math.log2(before * kept_mass)


@pytest.mark.parametrize("name", ["dry", "xtc", "top-nσ", "dynatemp"])
def test_drafts_with_the_new_samplers_are_exact(name: str) -> None:
    """Greedy assisted text equals greedy text under DRY; a sampled run ends without an error."""
    model, draft = tiny.shared("llama"), tiny.shared("llama")
    config = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": name != "dry"}
    request = core.Request([5, 6, 5, 6, 5], config, strategy="assisted", options=ON[name], drafters=(draft,), seed=5)
    written = core.run(model, request).sequences[0]
    assert len(written) == 12
    if name == "dry":
        plain = core.Request([5, 6, 5, 6, 5], config, strategy="greedy", options=ON[name])
        assert written == core.run(model, plain).sequences[0]


def test_mirostat_refuses_drafts_by_name() -> None:
    model = tiny.shared("llama")
    request = core.Request(
        [5, 6], {"max_new_tokens": 4, "do_sample": True}, strategy="prompt_lookup", options=ON["mirostat"]
    )
    with pytest.raises(ParameterError, match="Mirostat needs tokens one by one") as caught:
        core.run(model, request)
    assert "without drafts" in caught.value.remedy


@pytest.mark.parametrize("name", ON)
def test_new_samplers_have_no_equivalent_in_generate(name: str) -> None:
    reported = core.why_not_generate(core.Request("A", {}, strategy="sampling", options=ON[name]), model="storyteller")
    assert reported.startswith("it does not support ")
