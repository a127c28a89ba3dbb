"""Simulated out-of-memory errors: the run continues with a smaller cache, or fails with a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import OutOfMemoryError
from decodescope.core.events import BeamStep, CachePlan, Event, Finished, Notice, RunStarted, TokenChosen
from decodescope.core.models.text_decoder import cache_name
from tests.core import tiny


class Exhausted:
    """Make a model run out of memory once its cache holds `tokens` tokens, unless the cache is one of `spared`."""

    def __init__(self, tokens: int, *spared: str, error: type[BaseException] = torch.OutOfMemoryError) -> None:
        self.tokens, self.spared, self.error, self.failures = tokens, spared, error, 0

    def __call__(self, module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        cache = kwargs.get(cache_name(module))
        if type(cache).__name__ not in self.spared and int(cache.get_seq_length()) >= self.tokens:
            self.failures += 1
            words = "a division" if self.error is ZeroDivisionError else "out of memory"
            raise self.error(f"{words}, as the test wants it")


def failing(kind: str, exhausted: Exhausted) -> core.LoadedModel:
    model = tiny.make(kind)
    model.model.register_forward_pre_hook(exhausted, with_kwargs=True)
    return model


def request(**more: Any) -> core.Request:
    settings = {name: more.pop(name) for name in ("num_beams", "do_sample", "num_return_sequences") if name in more}
    config = GenerationConfig(max_new_tokens=20, min_new_tokens=20, **settings)
    return core.Request(tiny.prompt(), config, **more)


def of(kind: type[Event], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def collect_events(events: Iterator[Event], seen: list[Event]) -> None:
    """Collect events, also those before a failure."""
    for event in events:
        seen.append(event)


def change_weights(model: core.LoadedModel) -> None:
    """Make a model write something else from now on."""
    with torch.no_grad():
        for layer in model.model.model.layers:
            layer.mlp.down_proj.weight.mul_(-3)


@pytest.mark.every(2)
@pytest.mark.parametrize("tokens", [0, 12, 20])
@pytest.mark.parametrize("settings", [{}, {"do_sample": True, "num_return_sequences": 2}, {"num_beams": 3}], ids=str)
def test_out_of_memory_continues_with_an_offloaded_cache(tokens: int, settings: dict[str, Any]) -> None:
    exhausted = Exhausted(tokens, "DiskCache")
    result = core.run(failing("llama", exhausted), request(**settings))
    whole = core.run(tiny.shared("llama"), request(**settings))
    assert exhausted.failures == 1
    assert result.sequences == whole.sequences
    for kind in (RunStarted, TokenChosen, BeamStep, Finished):
        assert len(of(kind, result.events)) == len(of(kind, whole.events))
    assert [event.id for event in of(TokenChosen, result.events)] == [
        event.id for event in of(TokenChosen, whole.events)
    ]
    (notice,) = of(Notice, result.events)
    assert notice.kind == "memory_fallback"
    assert "Offloaded" in notice.message
    assert ("after" in notice.message) == (tokens >= 12 and "num_beams" not in settings)


def test_sliding_window_is_tried_before_the_disk() -> None:
    exhausted = Exhausted(14, "DiskCache")
    result = core.run(failing("mistral", exhausted), request())
    assert exhausted.failures == 2
    assert [("Sliding" in event.message, "Offloaded" in event.message) for event in of(Notice, result.events)] == [
        (True, False), (False, True),
    ]  # fmt: skip
    assert result.sequences == core.run(tiny.shared("mistral"), request()).sequences


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
@pytest.mark.parametrize(
    ("more", "spared"),
    [({"memory_fallback": False}, "DiskCache"), ({}, "nothing"), ({"cache": "quantized"}, "DiskCache")],
    ids=["forbidden", "nothing left", "inexact"],
)
def test_failed_fallback_raises_out_of_memory_and_keeps_the_text(
    error: type[BaseException], more: dict[str, Any], spared: str
) -> None:
    seen: list[Event] = []
    events = core.stream(failing("llama", Exhausted(20, spared, error=error)), request(**more))
    with pytest.raises(OutOfMemoryError, match="ran out of memory") as caught:
        collect_events(events, seen)
    assert caught.value.remedy
    expected = core.run(tiny.shared("llama"), replace(request(**more), memory_fallback=True)).sequences[0]
    reported = [event.id for event in of(TokenChosen, seen)]
    assert len(reported) == 9
    assert reported == expected[:9]


def test_stored_prefixes_are_freed_first() -> None:
    store = core.PrefixStore()
    model = failing("llama", Exhausted(20, "DiskCache"))
    store.put(model, core.caches.registry["sink"], {}, [1], core.caches.registry["sink"].build(model, 1, {}))
    store.prefixes[0].bytes = 5_000_000
    (notice,) = of(Notice, core.run(model, request(), prefixes=store).events)
    assert "stored prefixes was freed" in notice.message
    assert [prefix.backend for prefix in store.prefixes] == ["offloaded"]


def test_fallback_with_a_different_text_raises_an_error() -> None:
    model = failing("llama", Exhausted(20, "DiskCache"))
    events = core.stream(model, request())
    next(event for event in events if isinstance(event, TokenChosen) and event.step == 8)
    change_weights(model)
    with pytest.raises(OutOfMemoryError, match="gave a different text"):
        collect_events(events, [])


def test_other_errors_are_reported_with_a_traceback() -> None:
    with pytest.raises(core.errors.UnforeseenError, match="ZeroDivisionError") as failure:
        core.run(failing("llama", Exhausted(14, error=ZeroDivisionError)), request())
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    assert "Traceback" in failure.value.details
    assert failure.value.remedy


def test_fallback_cache_reports_its_own_plan() -> None:
    model = failing("llama", Exhausted(16, "DiskCache"))
    plans = of(CachePlan, core.run(model, request()).events)
    assert [plan.backend for plan in plans] == ["dynamic", "offloaded"]
    assert plans[0].predicted != plans[1].predicted
