"""Comparisons as plain data: hand-computed values, word diffs, sweeps, and the result of each run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decodescope.app.state.comparison import candidates as choose
from decodescope.app.state.comparison import candidates as sweeps
from decodescope.app.state.comparison.candidates import Sweep, default_range, make_range, parse_values, with_setting
from decodescope.app.state.comparison.results import (
    DiffSpan,
    comparison_rows,
    first_difference,
    split_words,
    start_comparison,
    word_diff,
)
from decodescope.app.state.comparison.run_metrics import (
    compute_run_metrics,
    distinct,
    mean_entropy,
    mean_log_probability,
    repeated,
)
from decodescope.app.state.run import Run
from decodescope.app.state.setting_values import InvalidValueError
from decodescope.app.state.worker_messages import ErrorReport, LoadRequest, Outcome, RunRequest
from decodescope.core import catalog, strategies
from decodescope.core.events import Finished, Metrics
from tests.ui.scripted import end_token, started, token

BASE = RunRequest(
    "Once", strategy="sampling", config={"max_new_tokens": 40, "temperature": 0.8}, seed=7,
    load=LoadRequest("storyteller"),
)  # fmt: skip


def finished(request: RunRequest, *pieces: str, kind: str = "completed") -> Run:
    run = Run(request)
    tokens = [token(step, piece, 0.5) for step, piece in enumerate(pieces)]
    run.apply([started(), *tokens, end_token(len(pieces))])
    metrics = Metrics(9, len(pieces) + 1, 2.0, 0.25, None, 40.0, 12, cache_bytes=512, cache_peak_bytes=1024)
    run.apply([Finished("completed", ((),), ("".join(pieces),), metrics)])
    run.outcome = Outcome("completed" if kind == "completed" else "stopped")
    return run


def parameter(name: str) -> sweeps.Parameter:
    return strategies.registry["sampling"].parameter(name)


# Figures


def test_distinct_and_repeated_match_hand_computed_values() -> None:
    ids = [1, 2, 1, 2, 1, 2, 3]
    assert distinct(ids, 1) == 3 / 7
    assert distinct(ids, 2) == 3 / 6  # 12 21 23
    assert distinct(ids, 3) == 3 / 5  # 121 212 123
    assert repeated(ids) == 1 - 3 / 4  # 1212 2121 1212 2123
    assert distinct([1, 2], 3) is None
    assert repeated([1, 2, 3]) is None
    assert repeated([5, 5, 5, 5, 5, 5]) == 1 - 1 / 3


def test_mean_entropy_and_log_probability_match_hand_computed_values() -> None:
    tokens = [replace(token(0, "a"), entropy=math.log(2), raw_log_probability=-1.0),
              replace(token(1, "b"), entropy=math.log(8), raw_log_probability=-3.0)]  # fmt: skip
    assert mean_entropy(tokens) == pytest.approx(2.0)
    assert mean_log_probability(tokens) == -2.0
    assert mean_entropy([]) is None
    assert mean_log_probability([]) is None


def test_run_metrics_of_finished_run() -> None:
    figures = compute_run_metrics(finished(BASE, " a", " b", " a"))
    assert (figures.length, figures.distinct_1, figures.tokens_per_second, figures.seconds) == (4, 2 / 3, 40.0, 2.0)
    assert (figures.cache_bytes, figures.cache_peak, figures.passes, figures.acceptance) == (512, 1024, 12, None)
    assert compute_run_metrics(Run(BASE)).length == 0


# Differences


def test_word_diff_marks_changed_words() -> None:
    reported = word_diff("A fox ran home.", "A  small fox ran away.")
    assert reported == [
        DiffSpan("same", "A"), DiffSpan("own", "  small"), DiffSpan("same", " fox ran"), DiffSpan("missing", " home."),
        DiffSpan("own", " away."),
    ]  # fmt: skip


@given(st.text("ab \n", max_size=30), st.text("ab \n", max_size=30))
def test_word_diff_contains_both_texts(one: str, other: str) -> None:
    spans = word_diff(one, other)
    assert "".join(span.text for span in spans if span.kind != "missing") == other
    there = [span.text.split() for span in spans if span.kind != "own"]
    assert [word for words in there for word in words] == one.split()
    assert "".join(split_words(one)) == one
    assert all(span.kind == "same" for span in word_diff(one, one))


def test_first_difference_of_token_ids() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 4]) == 1
    assert first_difference([1, 2], [1, 2, 3]) == 2


# Sweeps


def test_make_range_spaces_values_evenly_or_logarithmically() -> None:
    assert make_range(parameter("temperature"), 0.1, 0.5, 5) == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert make_range(parameter("top_k"), 1, 3, 9) == (1, 2, 3)
    logarithmic = replace(parameter("temperature"), logarithmic=True)
    assert make_range(logarithmic, 0.01, 100, 5) == (0.01, 0.1, 1.0, 10.0, 100.0)


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("top_p", "0.5 1.5", "top_p must be at most 1."),
        ("top_k", "1 2.5", "top_k must be an integer"),
        ("temperature", "warm", "temperature must be a number"),
        ("temperature", " , ", "No values given"),
    ],
)
def test_invalid_value_list_is_rejected_with_cause(name: str, text: str, cause: str) -> None:
    with pytest.raises(InvalidValueError, match=cause):
        parse_values(parameter(name), text)


def test_value_lists_and_ranges_are_validated() -> None:
    assert parse_values(parameter("temperature"), "0.5; 1, 0.5\n2") == (0.5, 1.0, 2.0)
    assert parse_values(parameter("top_p"), "0.5 off") == (0.5, None) if parameter("top_p").default is None else True
    with pytest.raises(InvalidValueError, match="at most"):
        make_range(parameter("top_p"), 0.5, 2, 3)
    with pytest.raises(InvalidValueError, match="two different ends"):
        make_range(parameter("top_p"), 0.5, 0.5, 3)


def test_default_range_of_every_parameter_is_valid() -> None:
    for strategy in strategies.registry.values():
        for each in strategy.parameters:
            if each.kind in ("int", "float"):
                low, high = default_range(each, strategy.defaults.get(each.name, each.default))
                assert len(make_range(each, low, high, 3)) >= 2, (strategy.name, each.name)


def test_a_sweep_is_every_value_with_every_seed() -> None:
    sweep = Sweep(parameter("temperature"), (0.5, 1.0), (7, 8, 9))
    found = sweeps.sweep_candidates(BASE, sweep)
    assert sweep.count == len(found) == 6
    reported = [(c.index, c.request.settings["temperature"], c.request.seed) for c in found]
    assert reported == [(0, 0.5, 7), (0, 0.5, 8), (0, 0.5, 9), (1, 1.0, 7), (1, 1.0, 8), (1, 1.0, 9)]
    assert found[4].title == "Temperature 1, seed 8"
    assert "one value" in sweeps.sweep_unsupported_reason(Sweep(parameter("top_p"), (0.5,), (1,)))
    assert "the maximum is" in sweeps.sweep_unsupported_reason(
        Sweep(parameter("top_k"), tuple(range(100)), tuple(range(10)))
    )
    assert sweeps.sweep_unsupported_reason(sweep) == ""


def test_with_setting_sets_config_or_options() -> None:
    swept = with_setting(BASE, parameter("seed_each"), True)
    assert (dict(swept.options), "seed_each" in swept.config) == ({"seed_each": True}, False)
    assert "temperature" not in with_setting(BASE, parameter("temperature"), None).config


# What can be compared


def test_seeds_with_deterministic_strategy_are_unsupported() -> None:
    assert [c.request.seed for c in choose.seed_candidates(BASE, 3)] == [7, 8, 9]
    assert choose.seeds_unsupported_reason(BASE) == ""
    assert "does not sample" in choose.seeds_unsupported_reason(RunRequest("", strategy="greedy"))
    assert choose.seeds_unsupported_reason(RunRequest("", strategy="dola", config={"do_sample": True})) == ""


def test_model_candidates_start_with_model_of_run() -> None:
    base = replace(BASE, load=replace(BASE.load, allow_remote_code=True))
    found = choose.model_candidates(base, catalog.bundled())
    assert found[0].request.load == base.load
    assert {c.request.load.allow_remote_code for c in found[1:]} == {False}
    assert next(c for c in found if c.key == "summarizer").chosen is False
    assert sum(c.chosen for c in found) == 3


# What came of them


def test_comparison_of_seeds_completes() -> None:
    comparison = start_comparison(choose.seed_candidates(BASE, 4))
    assert [request.seed for request in comparison.start()] == [7, 8, 9, 10]
    assert comparison.reference is None
    failed = Run(comparison.entries[0].candidate.request)
    failed.outcome = Outcome("failed", "no", ErrorReport("no", "It is too large."))
    assert not comparison.assign_result(finished(replace(BASE, seed=99), " a"))
    for run in (failed, finished(replace(BASE, seed=8), " a", " b"), finished(replace(BASE, seed=9), " a", " c")):
        assert comparison.assign_result(run)
    comparison.stop_remaining()
    assert [entry.state for entry in comparison.entries] == ["failed", "done", "done", "stopped"]
    assert comparison.entries[0].cause == "It is too large."
    assert comparison.reference is comparison.entries[1]
    assert comparison.first_difference(comparison.entries[2]) == 1
    assert [span.kind for span in comparison.word_diff(comparison.entries[2])] == ["same", "missing", "own"]
    comparison.reference_key = "seed-9"
    assert comparison.reference is comparison.entries[2]
    assert comparison.is_over


def test_comparison_of_existing_runs_starts_no_requests() -> None:
    runs = [finished(BASE, " a"), finished(replace(BASE, seed=8), " b"), Run(BASE)]
    found = choose.run_candidates(runs)
    assert [bool(c.reason) for c in found] == [False, False, True]
    comparison = start_comparison(found[:2])
    assert comparison.start() == []
    assert [run for _, run in comparison.results] == runs[:2]
    assert comparison.entry_of(runs[1]) is comparison.entries[1]


def test_comparison_rows_have_column_for_swept_parameter() -> None:
    sweep = Sweep(parameter("temperature"), (0.5, 1.0), (7,))
    comparison = start_comparison(sweeps.sweep_candidates(BASE, sweep), sweep)
    comparison.start()
    comparison.assign_result(finished(comparison.entries[0].candidate.request, " a", " b"))
    comparison.stop_remaining()
    head, one, other = comparison_rows(comparison)
    row = dict(zip(head, one, strict=True))
    assert (row["temperature"], row["seed"], row["length"], row["text"]) == (0.5, 7, 3, " a b")
    assert other == ["Temperature 1", 1.0, "sampling", "dynamic", "storyteller", 7, "stopped"]
