"""A steady request depends neither on the clock nor on earlier runs."""

from __future__ import annotations

from typing import Any

import pytest

from decodescope import core
from decodescope.core.decoding.speculation import tree_passes
from decodescope.core.events import CostCurve
from tests.core import tiny
from tests.core.spec_models import config, rounds, similar_model

WAYS: dict[str, dict[str, Any]] = {
    "assisted": {"strategy": "assisted"},
    "tree": {"strategy": "token_tree"},
    "heuristic": {"strategy": "assisted", "options": {"schedule": "heuristic"}},
}


@pytest.mark.parametrize("way", WAYS)
def test_steady_rounds_are_independent_of_the_clock(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, drafters, seen = tiny.shared("llama"), [similar_model("llama")], []
    for ticks in (1e-6, 3.0):
        now = iter(range(1_000_000))
        monkeypatch.setattr(tree_passes.time, "thread_time", lambda ticks=ticks, now=now: next(now) * ticks)
        request = core.Request(tiny.prompt(), config(), drafters=drafters, top_n=0, steady=True, **WAYS[way])
        result = core.run(model, request)
        assert not any(isinstance(event, CostCurve) for event in result.events)
        seen.append([(entry.length, len(entry.nodes), entry.accepted) for entry in rounds(result)])
    assert seen[0] == seen[1]
    assert seen[0]
