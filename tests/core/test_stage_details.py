"""Step details of DRY, XTC, top-nσ, mirostat and dynamic temperature, compared with the events."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.events import StageDetail, TokenChosen
from tests.core import tiny

PROMPT = [5, 6, 7, 9, 5, 6, 7]


def chosen(options: dict[str, Any], strategy: str = "sampling", **more: Any) -> list[TokenChosen]:
    config = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": strategy != "greedy", "top_k": 0}
    request = core.Request(PROMPT, config, strategy=strategy, options=options, seed=4, top_n=8, **more)
    return [event for event in core.stream(tiny.shared("llama"), request) if isinstance(event, TokenChosen)]


def details(events: list[TokenChosen]) -> list[StageDetail]:
    found = [[stage.detail for stage in event.funnel if stage.detail is not None] for event in events]
    assert all(len(of_step) == 1 for of_step in found)
    return [of_step[0] for of_step in found]


def text_of(events: list[TokenChosen], step: int) -> list[int]:
    return PROMPT + [event.id for event in events[:step]]


@pytest.mark.parametrize("strategy", ["greedy", "sampling", "assisted"])
def test_dry_details_name_the_earlier_passage(strategy: str) -> None:
    drafters = {"drafters": (tiny.shared("llama"),)} if strategy == "assisted" else {}
    events = chosen({"dry_multiplier": 0.8}, strategy, **drafters)
    for step, detail in enumerate(details(events)):
        text = text_of(events, step)
        assert detail.repeats is not None
        assert detail.repeats.count == len(detail.repeats.found)
        for repeat in detail.repeats.found:
            earlier = len(text) - repeat.back
            assert text[earlier] == repeat.id
            assert text[earlier - repeat.length : earlier] == text[-repeat.length :]
            assert repeat.penalty == pytest.approx(0.8 * 1.75 ** (repeat.length - 2))
    (first,) = details(events)[0].repeats.found  # type: ignore[union-attr]
    assert (first.id, first.back, first.length) == (9, 4, 3)


@pytest.mark.parametrize("strategy", ["sampling", "assisted"])
def test_xtc_details_contain_the_draw_and_removed_tokens(strategy: str) -> None:
    drafters = {"drafters": (tiny.shared("llama"),)} if strategy == "assisted" else {}
    events = chosen({"xtc_probability": 0.5, "xtc_threshold": 0.02}, strategy, **drafters)
    fell = set()
    for event, detail in zip(events, details(events), strict=True):
        cut, stage = detail.top_cut, event.funnel[-1]
        assert cut is not None
        assert cut.removed == event.funnel[-2].survivors - stage.survivors
        assert [item.probability for item in cut.likely] == sorted((i.probability for i in cut.likely), reverse=True)
        assert all(item.probability >= 0.02 for item in cut.likely)
        if cut.removed:
            assert cut.die < cut.chance
            assert cut.removed == cut.count - 1
            gone = sum(item.probability for item in cut.likely[: cut.removed])
            assert cut.count > 16 or stage.mass == pytest.approx(1 - gone, abs=1e-4)
        fell.add(bool(cut.removed))
    assert fell == {True, False}


def test_top_n_sigma_details_contain_the_cut() -> None:
    events = chosen({"top_n_sigma": 0.7})
    for event, detail in zip(events, details(events), strict=True):
        assert detail.spread is not None
        assert detail.spread.floor == pytest.approx(detail.spread.best - 0.7 * detail.spread.deviation)
        assert sum(detail.spread.counts) == event.funnel[0].survivors - _banned(event)
        assert detail.spread.counts[-1] > 0 < detail.spread.counts[0]
        assert detail.spread.lowest < detail.spread.floor <= detail.spread.best


def _banned(event: TokenChosen) -> int:
    """Return the number of tokens that the previous stage banned (the end token, while the text is too short)."""
    before = [stage for stage in event.funnel if stage.name != "top_n_sigma"]
    return before[0].survivors - before[-1].survivors


def test_mirostat_limit_follows_the_reported_surprise() -> None:
    """μ follows Algorithm 2 from the values of one step to the next."""
    found = [detail.aim for detail in details(chosen({"mirostat_tau": 3.0, "mirostat_eta": 0.4}))]
    assert found[0] is not None
    assert found[0].limit == pytest.approx(6.0)
    for one, other in itertools.pairwise(found):
        assert one is not None
        assert other is not None
        assert other.limit == pytest.approx(one.limit - 0.4 * (one.surprise - 3.0), abs=1e-4)


def test_dynamic_temperature_details_contain_its_value() -> None:
    for event in (events := chosen({"dynatemp_high": 1.8, "dynatemp_low": 0.6})):
        reported = next(stage.detail for stage in event.funnel if stage.detail)
        assert reported is not None
        assert reported.heat is not None
        stored = event.funnel[-2].survivors
        shares = torch.tensor([item.raw_log_probability for item in event.alternatives])
        assert shares.isfinite().all()
        assert 0.6 <= reported.heat.temperature <= 1.8
        if stored == event.funnel[0].survivors:
            expected = 0.6 + 1.2 * event.entropy / math.log(stored)
            assert reported.heat.temperature == pytest.approx(expected, abs=1e-4)
    assert len({detail.heat for detail in details(events)}) > 1


def test_details_are_absent_without_samplers_or_tracing() -> None:
    assert all(stage.detail is None for event in chosen({}) for stage in event.funnel)
    request = core.Request(PROMPT, {"max_new_tokens": 3}, "sampling", {"top_n_sigma": 1.0}, top_n=0)
    silent = [e for e in core.stream(tiny.shared("llama"), request) if isinstance(e, TokenChosen)]
    assert [event.funnel for event in silent] == [(), (), ()]


def test_recorded_run_keeps_stage_details(tmp_path: Path) -> None:
    options = {"dry_multiplier": 0.8, "xtc_probability": 0.5, "xtc_threshold": 0.02, "top_n_sigma": 2.0}
    request = core.Request(PROMPT, {"max_new_tokens": 8}, "sampling", options | {"dynatemp_high": 1.5}, seed=1)
    path = tmp_path / "run.decodescope"
    events = list(core.record(path, core.stream(tiny.shared("llama"), request), request))
    assert list(core.replay(path)) == events
