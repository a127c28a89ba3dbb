"""A long prompt is read in chunks: a stop takes effect between them, and the text is the same."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.decoding import prefill
from decodescope.core.decoding.forward.forward_pass import Forward
from tests.core import tiny

PROMPT = [5 + place * 7 % 50 for place in range(150)]
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"config": {"num_return_sequences": 2}},
    "beam_search": {"config": {"num_beams": 2}},
    "contrastive": {},
    "dola": {},
    "prompt_lookup": {},
    "lookahead": {},
    "assisted": {"drafters": True},
    "token_tree": {"drafters": True},
}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk has 32 tokens, however fast this machine is."""
    monkeypatch.setattr(prefill, "_FIRST_CHUNK_WORK", {"cpu": 0.0})
    monkeypatch.setattr(prefill, "_MIN_CHUNK", 32)
    monkeypatch.setattr(prefill.ChunkSizes, "update", lambda self, size, seconds: None)


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens of every pass of a model."""
    found, usual = list[int](), Forward.__call__

    def counted(self: Forward, ids: torch.Tensor, **more: Any) -> Any:
        found.append(ids.shape[1])
        return usual(self, ids, **more)

    monkeypatch.setattr(Forward, "__call__", counted)
    return found


def request(strategy: str, **more: Any) -> core.Request:
    own = dict(STRATEGIES[strategy])
    drafters = (tiny.shared("llama"),) if own.pop("drafters", False) else ()
    config = {"max_new_tokens": 6, **own.pop("config", {})}
    return core.Request(PROMPT, config, strategy=strategy, drafters=drafters, steady=True, seed=2, **own, **more)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chunked_prefill_gives_the_text_of_one_pass(
    strategy: str, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.shared("llama")
    chunked = core.run(model, request(strategy))
    monkeypatch.setattr("decodescope.core.decoding.run.can_read_in_chunks", lambda *given: False)
    assert core.run(model, request(strategy)).sequences == chunked.sequences


WITH_WINDOWS = ("mistral", "gemma2", "gemma3")
ATTENDING = tuple(family for family in tiny.ALL if family != "mamba")
SERVED: dict[str, tuple[str, ...]] = {
    "dynamic": tiny.ALL,
    "static": ATTENDING,
    "sliding_window": WITH_WINDOWS,
    "quantized": tuple(family for family in ATTENDING if family not in WITH_WINDOWS),
    "sink": ("llama", "qwen3"),
    "offloaded": ATTENDING,
}
"""The families that each cache supports."""


@pytest.mark.parametrize("cache", SERVED)
def test_caches_support_exactly_the_listed_families(cache: str) -> None:
    backend = core.caches.registry[cache]
    assert tuple(family for family in tiny.ALL if not backend.unsupported_reason(tiny.shared(family))) == SERVED[cache]


@pytest.mark.parametrize(("cache", "family"), [(cache, family) for cache in SERVED for family in SERVED[cache]])
def test_chunked_prefill_with_every_family_and_cache(
    family: str, cache: str, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny.shared(family)
    requested = core.Request(PROMPT, {"max_new_tokens": 5}, cache=cache)
    chunked = core.run(model, requested)
    monkeypatch.setattr("decodescope.core.decoding.run.can_read_in_chunks", lambda *given: False)
    whole = core.run(model, requested)
    assert whole.sequences == chunked.sequences
    first, other = (next(e for e in run.events if isinstance(e, core.events.TokenChosen)) for run in (whole, chunked))
    assert first.probability == pytest.approx(other.probability, rel=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_stop_takes_effect_before_the_next_chunk(strategy: str, small_chunks: None, lengths: list[int]) -> None:
    events = list(core.stream(tiny.shared("llama"), request(strategy), AfterPasses(lengths, 2)))
    last = events[-1]
    assert isinstance(last, core.events.Finished)
    assert lengths == [32, 32], "two chunks of five were read"
    assert (last.reason, last.sequences) == ("stopped", ((),))
    assert not any(isinstance(event, core.events.TokenChosen) for event in events)


class AfterPasses(threading.Event):
    """An event that is set after the given number of passes."""

    def __init__(self, passes: list[int], count: int) -> None:
        super().__init__()
        self._passes, self._count = passes, count

    def is_set(self) -> bool:
        return len(self._passes) >= self._count


def test_a_stop_in_the_last_pass_writes_no_token(lengths: list[int]) -> None:
    result = core.run(tiny.shared("llama"), core.Request([5, 6]), AfterPasses(lengths, 1))
    assert (result.reason, result.sequences, len(lengths)) == ("stopped", [[]], 1)


def test_a_short_prompt_is_one_pass(lengths: list[int]) -> None:
    core.run(tiny.shared("llama"), core.Request(PROMPT[:40], {"max_new_tokens": 1}))
    assert lengths == [40]


def test_a_fast_model_reads_a_long_prompt_at_once(lengths: list[int]) -> None:
    core.run(tiny.shared("llama"), core.Request(PROMPT, {"max_new_tokens": 1}, steady=True))
    assert lengths == [150]


def test_prefill_chunk_size_is_applied(lengths: list[int]) -> None:
    core.run(tiny.shared("llama"), core.Request(PROMPT, {"max_new_tokens": 1, "prefill_chunk_size": 60}))
    assert lengths == [60, 60, 30]


def test_chunks_read_before_a_stop_are_reused_by_the_next_run(small_chunks: None, lengths: list[int]) -> None:
    store, model = core.PrefixStore(), tiny.make("llama")
    core.run(model, core.Request(PROMPT), AfterPasses(lengths, 2), prefixes=store)
    lengths.clear()
    core.run(model, core.Request(PROMPT, {"max_new_tokens": 1}), prefixes=store)
    assert sum(lengths) == 150 - 64


@pytest.mark.parametrize(("seconds", "size"), [(0.09, 64), (0.36, 32), (1e-9, 128)])
def test_chunk_sizes_follow_the_measured_time(seconds: float, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefill, "_FIRST_CHUNK_WORK", {"cpu": 0.0})
    monkeypatch.setattr(prefill, "_MIN_CHUNK", 32)
    sizes = prefill.ChunkSizes(tiny.make("llama"))
    assert sizes.next_size(1000) == 32
    sizes.update(32, seconds)
    assert sizes.next_size(1000) == size
    assert sizes.next_size(size + size // 2) == size + size // 2


def test_draft_model_stops_during_its_prefill(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decodescope.core.decoding.speculation.drafters.model_drafter.FIRST_CHUNK", 32)
    monkeypatch.setattr("decodescope.core.decoding.speculation.drafters.model_drafter.CHUNK_SECONDS", 0.0)
    cancel = AfterPasses(lengths, 5)
    draft = tiny.make("gpt2")
    requested = core.Request(
        PROMPT, {"max_new_tokens": 9}, strategy="assisted", options={"schedule": "constant"}, steady=True
    )
    result = core.run(tiny.shared("llama"), requested, cancel, drafters=[draft])
    assert result.reason == "stopped"
    assert lengths[0] == 150
    assert max(lengths[1:]) <= 32, "the draft model reads in chunks"
    assert len(lengths) <= 6
