"""The cache at any position of a run, from its measurements and its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decodescope.app.state.cache_history import CacheHistory
from decodescope.app.state.comparison.candidates import cache_candidates, strategy_candidates
from decodescope.app.state.comparison.results import Comparison, ComparisonEntry, first_difference
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.views.memory import cached_tokens as memory_tokens
from decodescope.app.views.memory.report import cache_report, formula_line, formula_lines
from decodescope.core.common.size_terms import NOTHING, DifferenceOf, Length, MinimumOf, NamedNumber, ProductOf
from decodescope.core.events import CacheMeasured, CachePlan, Event, Notice, TokenChosen
from tests.ui.scripted import PROMPT, make_run, started, story

EACH = 96
"""Bytes a token, in two layers."""
START = len(PROMPT)


def plan(window: int | None = None, block: int | None = None, capacity: int | None = None, top: int = 60) -> CachePlan:
    """A plan of a full, sliding-window (2 sinks), quantized (an eighth of the bytes) or static cache."""
    lengths = tuple(range(START, START + top + 1))

    def size(length: int) -> int:
        if block:
            return (length - length % block) * EACH // 8 + length % block * EACH
        return (capacity or min(length, (window or 10**6) - 1)) * EACH

    tokens = MinimumOf(Length(), DifferenceOf(NamedNumber(window, "window"), NamedNumber(1))) if window else Length()
    sizes, dynamic = tuple(size(n) for n in lengths), tuple(n * EACH for n in lengths)
    return CachePlan(
        "sink" if window else "quantized" if block else "static" if capacity else "dynamic",
        ProductOf((NamedNumber(EACH, "each"), tokens)),
        START,
        lengths,
        sizes,
        dynamic,
        capacity,
        2 if window else 0,
        window,
        block,
        4 if block else None,
    )


def measured(written: int, p: CachePlan) -> CacheMeasured:
    """Return the core's measurement after `written` tokens."""
    length = START + written - 1
    size, held = p.predicted[p.lengths.index(length)], ()
    if p.block:
        packed = (length - length % p.block) * EACH // 8
        parts = (("host", "residual", size - packed), ("host", "keys", packed))
        return CacheMeasured(written - 1, length, size, size, parts, (size // 2, size // 2), (), 0.05)
    if p.window is not None and length >= p.window:
        held = ((0, p.sinks), (length - p.window + 1 + p.sinks, length))
    parts = (("host", "keys", size // 2), ("host", "values", size // 2))
    tokens = min(length, p.window - 1) if p.window else length
    return CacheMeasured(written - 1, tokens, size, size, parts, (size // 2, size // 2), held)


def events(p: CachePlan, written: int, every: int = 8) -> list[Event]:
    """Return events of a run of `written` tokens, measured after the first token and every eighth one."""
    found: list[Event] = [p]
    for number, token in enumerate(story(written), 1):
        found.append(token)
        if number % every == 1:
            found.append(measured(number, p))
    return found


def model_of(p: CachePlan, written: int = 40) -> CacheHistory:
    model = CacheHistory()
    model.append(events(p, written))
    return model


@pytest.mark.parametrize("p", [plan(), plan(window=20), plan(block=8), plan(capacity=70)], ids=lambda p: p.backend)
def test_bytes_at_every_position_match_plan(p: CachePlan) -> None:
    """Between measurements too: exact caches grow as planned, quantized ones block by block."""
    model = model_of(p, 41)
    for x in range(1, 42):
        point, length = model.at(x), START + x - 1
        assert point is not None
        assert point.bytes == p.predicted[p.lengths.index(length)], x
        assert sum(size for _, size in point.parts) == point.bytes
        assert model.length_at(x) == length
        assert point.measured == (x % 8 == 1)


def test_curve_is_flat_after_window_is_full() -> None:
    p = plan(window=20)
    curve = {point.x: point.bytes for point in model_of(p).curve(40)}
    assert curve[20 - START] == 19 * EACH
    assert max(curve) == 40
    assert max(curve.values()) == 19 * EACH


def test_curve_drops_when_quantized_block_is_full() -> None:
    p = plan(block=8)
    model = model_of(p)
    curve = {model.length_at(point.x): point.bytes for point in model.curve(33) if point.x}
    assert curve[23] == 16 * EACH // 8 + 7 * EACH
    assert curve[24] == 24 * EACH // 8
    assert model.peak(33) == max(p.predicted[: 33 + 1])


def test_sliding_window_marks_sink_recent_and_evicted_tokens() -> None:
    p = plan(window=20)
    run = make_run(story(40))
    row = memory_tokens.token_rows(model_of(p), run, 33)[0]
    length = START + 32
    assert row.states.count(memory_tokens.SINK) == 2
    assert row.states.count(memory_tokens.RECENT) == 17
    assert row.states.count(memory_tokens.EVICTED) == length - 19
    assert row.states[-1] == memory_tokens.RECENT
    assert row.states[2] == memory_tokens.EVICTED
    model = model_of(p)
    assert "evicted: 0 bytes now" in memory_tokens.token_tooltip(model, run, row, 5)
    assert f"a sink, never evicted: {EACH} bytes" in memory_tokens.token_tooltip(model, run, row, 0)
    assert "“Once”" in memory_tokens.token_tooltip(model, run, row, 0)
    assert f"“{run.tokens[0].piece.replace(' ', '␣')}”" in memory_tokens.token_tooltip(model, run, row, START)


def test_tokens_are_not_evicted_before_window_is_full() -> None:
    model, run = model_of(plan(window=20)), make_run(story(40))
    assert memory_tokens.EVICTED not in memory_tokens.token_rows(model, run, 9)[0].states
    assert memory_tokens.EVICTED in memory_tokens.token_rows(model, run, 14)[0].states


def test_quantized_cache_marks_packed_and_exact_tokens() -> None:
    model, run = model_of(plan(block=8)), make_run(story(40))
    row = memory_tokens.token_rows(model, run, 19)[0]
    assert row.states == (memory_tokens.PACKED,) * 24 + (memory_tokens.EXACT,) * 3
    assert f"quantized to 4 bits: {EACH // 8} bytes" in memory_tokens.token_tooltip(model, run, row, 3)


def test_static_cache_marks_reserved_positions() -> None:
    row = memory_tokens.token_rows(model_of(plan(capacity=70)), make_run(story(40)), 11)[0]
    assert row.states.count(memory_tokens.ROOM) == 70 - START - 10


def test_encoder_decoder_has_two_rows_and_recurrent_state_none() -> None:
    halves = CacheHistory()
    parts = (("host", "self", 4), ("host", "cross", 36))
    halves.append([plan(), *story(1), CacheMeasured(0, 1, 40, 40, parts, (40,))])
    rows = memory_tokens.token_rows(halves, make_run(story(1)), 1)
    assert [len(row.states) for row in rows] == [START, START]
    assert halves.parts == [("host", "cross"), ("host", "self")]
    state = CacheHistory()
    flat = CachePlan("model_specific", NamedNumber(64, "states"), START, (START, START + 9), (64, 64), (64, 64))
    state.append([flat, *story(3), CacheMeasured(2, 0, 64, 64, (("host", "state", 64),), (64,))])
    run = make_run(story(3))
    assert memory_tokens.token_rows(state, run, 3) == []
    report = cache_report(state, run, 3)
    assert report is not None
    assert "does not grow" in report.sentence


def test_report_describes_cache_at_cursor() -> None:
    model, run = model_of(plan(window=20)), make_run(story(40))
    report = cache_report(model, run, 33)
    assert report is not None
    assert report.heading == "After token 33"
    assert report.token == "1.8 KiB"
    assert "first 2 tokens are kept as sinks" in report.sentence
    assert ("evicted", f"{START + 32 - 19} tokens") in [row.cells for row in report.rows]
    assert cache_report(CacheHistory(), run, 3) is None


def test_report_lists_weights_and_memory_per_device() -> None:
    run = Run(RunRequest("", load=LoadRequest("storyteller")))
    run.apply([replace(started(), device="cuda:0", placement=(("cuda:0", 3 << 20), ("cpu", 1 << 20)))])
    model = CacheHistory()
    model.append([
        plan(), *story(1),
        CacheMeasured(0, 1, 64, 64, device_used=5 << 20, device_reserved=2 << 20, device_free=9 << 20),
    ])  # fmt: skip
    report = cache_report(model, run, 1)
    assert report is not None
    assert "weights: 3.0 MiB on cuda:0, 1.0 MiB on the host" in report.facts
    assert "CUDA:0 memory: 5.0 MiB in tensors, 2.0 MiB reserved, 9.0 MiB free" in report.facts


def test_formula_line_contains_numbers() -> None:
    p = plan(window=20)
    assert formula_line(model_of(p), 15) == f"predicted = {EACH} · min(15, 20 − 1) = {15 * EACH:,} bytes"
    assert formula_lines(model_of(p), 33).startswith("each · min(length, window − 1)\n")


def test_memory_fallback_is_kept_as_notice() -> None:
    model = CacheHistory()
    model.append([Notice("memory_fallback", "Going on with “Offloaded”."), Notice("setting_ignored", "no")])
    assert model.notices == ["Going on with “Offloaded”."]


# Comparisons


def test_first_difference_returns_index_or_none() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 9, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2
    assert first_difference([], [5]) == 0


def test_cache_candidates_keep_seed_and_start_with_dynamic() -> None:
    base = RunRequest(
        "Once",
        strategy="beam_search",
        config={"num_beams": 4},
        cache="sink",
        cache_options={"window_length": 64},
        seed=5,
        load=LoadRequest("storyteller"),
    )
    found = {candidate.key: candidate for candidate in cache_candidates(base, None)}
    assert next(iter(found)) == "dynamic"
    assert found["sink"].request == base
    assert found["quantized-2"].request.cache_options == {"nbits": 2}
    assert found["static"].request.cache_options == {}
    assert {candidate.request.seed for candidate in found.values()} == {5}


def test_cache_candidate_unsupported_by_strategy_has_reason() -> None:
    base = RunRequest("Once", strategy="token_tree", load=LoadRequest("storyteller"))
    found = {candidate.key: candidate for candidate in cache_candidates(base, None)}
    assert "“Sink”" in found["sink"].reason
    assert not found["dynamic"].reason


def test_strategy_candidates_keep_only_shared_settings() -> None:
    base = RunRequest(
        "Once",
        strategy="sampling",
        config={"max_new_tokens": 17, "temperature": 2.0, "top_p": 0.5},
        load=LoadRequest("storyteller"),
    )
    found = {candidate.key: candidate for candidate in strategy_candidates(base, None)}
    assert next(iter(found)) == "sampling"
    assert found["sampling"].request is base
    assert found["beam_search"].request.settings["max_new_tokens"] == 17
    assert found["beam_search"].request.settings["num_beams"] == 4
    assert "temperature" not in found["greedy"].request.settings
    assert found["assisted"].reason


def run_with(request: RunRequest, tokens: list[TokenChosen]) -> Run:
    from decodescope.app.state.worker_messages import Outcome

    run = make_run(tokens, finished=True)
    run.request, run.outcome = request, Outcome("completed")
    return run


def test_finished_runs_are_assigned_to_their_entries() -> None:
    base = RunRequest("Once", load=LoadRequest("storyteller"))
    chosen = [c for c in cache_candidates(base, None) if c.key in ("dynamic", "static", "sink")]
    comparison = Comparison([ComparisonEntry(candidate) for candidate in chosen])
    comparison.start()
    assert not comparison.assign_result(run_with(chosen[1].request, story(5)))
    assert comparison.assign_result(run_with(chosen[0].request, story(9)))
    other = story(9)
    other[4:] = story(9, 3)[4:]
    assert comparison.assign_result(run_with(chosen[1].request, story(9)))
    assert comparison.first_difference(comparison.entries[1]) is None
    comparison.stop_remaining()
    assert [entry.state for entry in comparison.entries] == ["done", "done", "stopped"]


def both_halves(written: int, rows: int, p: CachePlan) -> CacheMeasured:
    """Cross-attention of 960 bytes in each of two layers and row, self-attention as planned, all for `rows` rows."""
    own, cross = EACH * rows * written, 2 * 960 * rows
    parts = (("host", "self", own), ("host", "cross", cross))
    layers = (own // 2, own // 2, cross // 2, cross // 2)
    return CacheMeasured(written - 1, written, own + cross, own + cross, parts, layers)


def test_cross_attention_bytes_stay_constant_between_measurements() -> None:
    lengths = tuple(range(1, 40))
    sizes = tuple(4 * (EACH * n + 2 * 960) for n in lengths)
    p = CachePlan("encoder_decoder", NOTHING, 1, lengths, sizes, sizes, None, 0, None, None, None)
    model, tokens = CacheHistory(), story(30)
    model.append([p, tokens[0], both_halves(1, 1, p), *tokens[1:4], both_halves(4, 4, p), *tokens[4:20],
                  both_halves(20, 4, p), *tokens[20:]])  # fmt: skip
    for x in (4, 9, 20, 30):
        point = model.at(x)
        assert point is not None
        parts = {part: size for (_, part), size in point.parts}
        assert parts == {"cross": 4 * 2 * 960, "self": 4 * EACH * x}, x
        assert point.layers == (2 * EACH * x, 2 * EACH * x, 4 * 960, 4 * 960)
    drawn = {point.x: point for point in model.curve(30)}
    assert (drawn[1].bytes, drawn[2].bytes) == (EACH + 2 * 960, 4 * (2 * EACH + 2 * 960)), "beams part at once"


def test_memory_fallback_switches_plan_at_its_step() -> None:
    old, new = plan(), plan(capacity=200)
    model, tokens = CacheHistory(), story(40)
    model.append([old, tokens[0], measured(1, old), *tokens[1:9], measured(9, old), *tokens[9:20],
                  Notice("memory_fallback", "cpu ran out of memory"), new, *tokens[20:30], measured(30, new),
                  *tokens[30:]])  # fmt: skip
    sizes = {x: point.bytes for x in range(10, 40) if (point := model.at(x)) is not None}
    assert all(sizes[x] == (START + x - 1) * EACH for x in range(10, 21)), "as it was until memory ended"
    assert {sizes[x] for x in range(21, 40)} == {200 * EACH}
    assert model.plan is new


class CountingPoints(list[Any]):
    """A list of points that counts its reads."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        CountingPoints.looks += 1
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        for point in super().__iter__():
            CountingPoints.looks += 1
            yield point

    def __reversed__(self) -> Iterator[Any]:
        for point in super().__reversed__():
            CountingPoints.looks += 1
            yield point


def count_reads(kind: str, count: int) -> int:
    """Count the reads of points while the whole curve and every position are computed."""
    p = plan(block=7 if kind == "blocks" else None, top=count + 1)
    found: list[Event] = [p]
    for number, token in enumerate(story(count), 1):
        found.append(token)
        if number % 2:
            size = number * EACH
            tokens = 0 if kind == "no length" else START + number - 1
            found.append(CacheMeasured(number - 1, tokens, size, size, (("host", "keys", size),), (size,)))
    history = CacheHistory()
    history.update(found)
    history.points = CountingPoints(history.points)
    CountingPoints.looks = 0
    history.curve(count)
    history.peak(count)
    for x in range(count):
        history.at(x)
        history.length_at(x)
        assert history.parts
    return CountingPoints.looks


@pytest.mark.parametrize("kind", ["plain", "blocks", "no length"])
def test_curve_cost_is_linear_in_measurements(kind: str) -> None:
    small, large = count_reads(kind, 200), count_reads(kind, 800)
    assert large <= 4 * 1.6 * small  # four times as many, and two more halvings for each
    assert large <= 800 * 60


def test_cached_results_are_invalidated_by_new_events() -> None:
    """In one batch or in many: the history is the same."""
    for p in (plan(), plan(block=7), plan(window=12), plan(capacity=60)):
        whole, piecewise = CacheHistory(), CacheHistory()
        found = events(p, 40)
        whole.update(found)
        for end in range(1, len(found) + 1):
            piecewise.update(found[:end])
            piecewise.length_at(end)
            assert piecewise.parts or not piecewise.points
            piecewise.curve(end)
        assert piecewise.points == whole.points
        assert [piecewise.at(x) for x in range(45)] == [whole.at(x) for x in range(45)]
        assert piecewise.curve(40) == whole.curve(40)
        assert piecewise.parts == whole.parts
