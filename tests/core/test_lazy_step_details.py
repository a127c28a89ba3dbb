"""Alternatives and funnel of a token are computed on first access and equal the eager ones."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest

from decodescope import core
from decodescope.core.decoding import step_details
from decodescope.core.events import TokenChosen
from tests.core import tiny

OPTIONS: dict[str, Any] = {"dry_multiplier": 0.8, "xtc_probability": 0.5}


def written() -> list[TokenChosen]:
    request = core.Request([5, 6, 7, 5, 6], {"max_new_tokens": 6, "top_k": 20}, "sampling", OPTIONS, seed=1)
    return [event for event in core.stream(tiny.shared("llama"), request) if isinstance(event, TokenChosen)]


def test_details_are_not_computed_before_the_first_access(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()
    alternative = step_details.build_alternative

    def counted(*figures: Any) -> Any:
        made.append("alternative")
        return alternative(*figures)

    monkeypatch.setattr(step_details, "build_alternative", counted)
    events = written()
    assert made == []
    assert len(events[3].alternatives) == len(made) > 0
    before = len(made)
    assert events[3].funnel[0].name == "raw"
    assert len(made) == before, "both were made with the first that was read"


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda event: pickle.loads(pickle.dumps(event)), lambda event: replace(event)]
)
def test_copied_event_has_its_details(way: Any) -> None:
    """Read one of two equal runs first, and copy the other first."""
    for read, other in zip(written(), written(), strict=True):
        assert read.funnel
        copied = way(other)
        assert copied.funnel == read.funnel
        assert copied.alternatives == other.alternatives == read.alternatives
        assert asdict(copied) | {"seconds": 0} == asdict(read) | {"seconds": 0}


def test_unread_events_compare_with_their_details() -> None:
    one, other = (replace(events[2], seconds=0.0) for events in (written(), written()))
    assert one == other
    assert one != replace(other, funnel=())
    assert hash(one) == hash(other)
    assert "funnel=(Stage(" in repr(written()[0])


def test_details_can_be_read_by_many_threads() -> None:
    wanted = [(event.alternatives, event.funnel) for event in written()]
    with ThreadPoolExecutor(8) as pool:
        for event, found in zip(written(), wanted, strict=True):
            reported = pool.map(lambda _, event=event: (event.funnel, event.alternatives), range(16))
            assert {(alternatives, funnel) for funnel, alternatives in reported} == {found}


def test_event_stays_frozen_and_rejects_unknown_attributes() -> None:
    event = written()[0]
    with pytest.raises(FrozenInstanceError):
        event.step = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="TokenChosen has no colour"):
        event.colour  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(event, "colour")
    assert TokenChosen(0, 0, 1, "a", "a", 1.0, 1.0, 0.0, 0.0, 1, 0.0, 0.0).funnel == ()


def test_stage_details_can_be_read_without_the_funnel() -> None:
    for event in written():
        reported = event.details
        assert reported == tuple(stage.detail for stage in event.funnel if stage.detail is not None)
        assert all(one is other for one, other in zip(reported, event.details, strict=True)), "each is told once"
        assert [reported[0].repeats is not None, reported[1].top_cut is not None] == [True, True]


def test_events_without_tracing_have_no_details() -> None:
    request = core.Request([5, 6], {"max_new_tokens": 2}, "greedy", top_n=0)
    tokens = [event for event in core.stream(tiny.shared("llama"), request) if isinstance(event, TokenChosen)]
    assert [(event.alternatives, event.funnel) for event in tokens] == [((), ())] * len(tokens)
