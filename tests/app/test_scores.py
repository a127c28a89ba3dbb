"""Statistics of a scored text, and the requests that score one."""

from __future__ import annotations

import math

import pytest

from decodescope import core
from decodescope.app.state.branching import make_score_request, strip_for_scoring
from decodescope.app.state.token_stats import (
    band,
    bands_text,
    compute_score_stats,
    largest_divergences,
    mean_divergence,
    most_uncertain,
    summary_text,
)
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core import words
from decodescope.core.decoding.step_details import LazyStepDetails
from decodescope.core.events import TokenChosen, TokenCompared
from tests.ui.scripted import make_run, token


def compared(step: int, bits: float) -> TokenCompared:
    return TokenCompared(step, step, 0.1, math.log(0.1), 4, 1.0, bits)


@pytest.mark.parametrize(("rank", "wanted"), [(1, 0), (10, 0), (11, 1), (100, 1), (101, 2), (1000, 2), (1001, 3)])
def test_rank_bands_match_gltr(rank: int, wanted: int) -> None:
    assert band(rank) == wanted


def test_score_stats_match_hand_computed_values() -> None:
    tokens = [token(0, " a", 0.5, 1), token(1, " b", 0.125, 20), token(2, " c", 0.25, 4000)]
    found = compute_score_stats(tokens)
    mean = sum(one.raw_log_probability for one in tokens) / 3
    assert found.mean_log_probability == pytest.approx(mean)
    assert found.perplexity == pytest.approx(math.exp(-mean))
    assert found.bands == (1, 1, 0, 1)
    assert summary_text(found).startswith("3 tokens · perplexity ")
    assert bands_text(found) == "rank ≤ 10: 33 % · ≤ 100: 33 % · ≤ 1,000: 0 % · more: 33 %"


def test_perplexity_of_no_tokens_is_one_and_of_impossible_infinite() -> None:
    assert compute_score_stats([]).perplexity == 1.0
    never = token(0, " a", 0.5, 1)
    object.__setattr__(never, "raw_log_probability", -math.inf)
    assert math.isinf(compute_score_stats([never]).perplexity)
    assert "perplexity ∞" in summary_text(compute_score_stats([never]))


def test_largest_divergences_are_sorted() -> None:
    found = [compared(0, 0.5), compared(1, 4.0), compared(2, 0.0), compared(3, 4.0)]
    assert [one.step for one in largest_divergences(found, 3)] == [1, 3, 0]
    assert mean_divergence(found) == pytest.approx(8.5 / 4)


def test_score_request_keeps_prompt_and_drops_settings() -> None:
    run = make_run([token(0, " fox"), token(1, " named")])
    request = make_score_request(run, "other")
    assert (request.prompt, request.beginning) == (run.request.prompt, tuple(one.id for one in run.tokens))
    assert (request.scored, request.second, request.parent) == (True, "other", run.id)
    plain = strip_for_scoring(RunRequest("x", strategy="sampling", config={"top_p": 0.3}, draft_names=("d",), seed=5))
    assert (plain.strategy, plain.config, plain.draft_names, plain.seed) == ("greedy", {}, (), 0)
    run.request = request
    assert make_score_request(run).beginning == request.beginning, "a score of a score is of the same text"


def test_most_uncertain_steps_are_found_without_reading_all_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    read, alternatives = list[int](), LazyStepDetails.alternatives
    model = core.load("storyteller")
    request = core.Request("Once upon a time", {"do_sample": True, "max_new_tokens": 100}, seed=3)
    tokens = [event for event in core.stream(model, request) if isinstance(event, TokenChosen)]

    def count(details: LazyStepDetails) -> object:
        read.append(1)
        return alternatives(details)

    monkeypatch.setattr(LazyStepDetails, "alternatives", count)
    found = most_uncertain(tokens, 5)
    assert len(read) < 20
    whole = sorted(range(len(tokens)), key=lambda n: -tokens[n].entropy)
    sure = [max(one.raw_probability for one in token.alternatives) > words.CERTAIN for token in tokens]
    assert found == [n for n in whole if not sure[n]][:5]
