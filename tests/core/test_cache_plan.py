"""The cache plan of a run equals the measured size of its cache."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.events import CacheMeasured, CachePlan, Prefilled
from decodescope.core.explain.sizes import format_names, format_numbers
from tests.core import tiny

NEW = 24
BATCHES: dict[str, dict[str, Any]] = {
    "one": {},
    "three texts": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 4},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 3},
}


def run(kind: str, cache: str, options: dict[str, Any] | None = None, **settings: Any) -> list[core.events.Event]:
    config = GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, **settings)
    request = core.Request(tiny.prompt(12), config, cache=cache, cache_options=options or {})
    return core.run(tiny.shared(kind), request).events


def planned(events: list[core.events.Event]) -> tuple[CachePlan, CacheMeasured]:
    """Return the only plan, emitted right after the prompt, and the last measurement."""
    kinds = [type(event) for event in events]
    assert kinds.count(CachePlan) == 1
    plan = events[kinds.index(CachePlan)]
    assert kinds.index(CachePlan) == kinds.index(Prefilled) + 1
    measured = [event for event in events if isinstance(event, CacheMeasured)]
    assert isinstance(plan, CachePlan)
    return plan, measured[-1]


def spelled(plan: CachePlan, length: int) -> float:
    """Return the value of the formula, as a reader would compute it."""
    text = format_numbers(plan.size, length).replace("\u2009", "")
    text = text.replace("·", "*").replace("÷", "/").replace("−", "-")
    assert not re.search(r"[a-z]", text.replace("min", "")), text
    return float(eval(text, {"__builtins__": {}, "min": min}))


def between(plan: CachePlan, length: int) -> float:
    """The prediction at a length, on the straight line between its neighbours."""
    points = list(zip(plan.lengths, plan.predicted, strict=True))
    for (a, low), (b, high) in itertools.pairwise(points):
        if a <= length <= b:
            return low + (high - low) * (length - a) / (b - a)
    raise AssertionError(length)


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("kind", "batch"),
    [
        (kind, batch)
        for kind in ("llama", "t5", "mamba")
        for batch in BATCHES
        if (kind, batch) != ("mamba", "contrastive")
    ],
)
def test_predicted_cache_size_equals_measured_size(kind: str, batch: str) -> None:
    several = ("dynamic", "static", "quantized")
    for name, backend in core.caches.registry.items():
        if backend.unsupported_reason(tiny.shared(kind)) or (batch != "one" and name not in several):
            continue
        plan, last = planned(run(kind, name, **BATCHES[batch]))
        length = last.tokens or plan.lengths[-1] - 1
        assert between(plan, length) == pytest.approx(last.bytes, rel=0.02 if name == "quantized" else 1e-9), name
        assert plan.backend == name
        for place, size in zip(plan.lengths, plan.predicted, strict=True):
            assert spelled(plan, place) == pytest.approx(size, rel=1e-9), (name, format_names(plan.size))


@pytest.mark.parametrize(("kind", "cache"), [("mistral", "sliding_window"), ("gemma3", "model_specific")])
def test_cache_plan_of_windowed_models_equals_measured_size(kind: str, cache: str) -> None:
    if kind not in tiny.ALL or core.caches.registry[cache].unsupported_reason(tiny.shared(kind)):
        pytest.skip("no such tiny model")
    plan, last = planned(run(kind, cache))
    assert plan.window is not None
    assert between(plan, last.tokens) == last.bytes
    assert all(spelled(plan, a) == b for a, b in zip(plan.lengths, plan.predicted, strict=True))
    assert plan.dynamic[-1] > plan.predicted[-1]


def test_plan_of_a_sink_cache_is_flat_beyond_its_window() -> None:
    plan, last = planned(run("llama", "sink", {"window_length": 16, "num_sink_tokens": 3}))
    assert (plan.sinks, plan.window, plan.capacity) == (3, 16, None)
    assert last.bytes == plan.predicted[-1] == plan.predicted[plan.lengths.index(15)]
    assert plan.dynamic[-1] > 1.9 * plan.predicted[-1]
    assert last.held == ((0, 3), (last.held[1][1] - 12, last.held[1][1]))


def test_plan_of_a_static_cache_is_constant() -> None:
    plan, last = planned(run("llama", "static"))
    assert plan.capacity == 12 + NEW
    assert set(plan.predicted) == {last.bytes}


def test_plan_of_a_quantized_cache_reports_its_bits() -> None:
    plan, last = planned(run("llama", "quantized", {"nbits": 2, "residual_length": 16, "q_group_size": 16}))
    assert (plan.bits, plan.block) == (2, 16)
    assert last.error is not None
    assert spelled(plan, last.tokens) == last.bytes
