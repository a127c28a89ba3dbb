"""Frequency of cache measurements: at every sixteenth step, and when the last one is too old."""

from __future__ import annotations

import pytest

from decodescope import core
from decodescope.core.decoding import sequences
from decodescope.core.events import CacheMeasured, TokenChosen
from tests.core import tiny

PROMPT = [5, 6, 7, 8, 9, 5, 6, 7]
TOKENS = 21
STRATEGIES = ("greedy", "sampling", "contrastive", "dola", "beam_search", "prompt_lookup", "lookahead", "early_exit")


def measurements(strategy: str) -> tuple[list[CacheMeasured], core.Result]:
    model = tiny.shared("llama")
    found = core.run(model, core.Request(PROMPT, {"max_new_tokens": TOKENS}, strategy=strategy, seed=1))
    return [event for event in found.events if isinstance(event, CacheMeasured)], found


def bytes_per_token() -> int:
    config = tiny.shared("llama").model.config
    width = config.hidden_size // config.num_attention_heads
    return int(2 * config.num_hidden_layers * config.num_key_value_heads * width * 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_slow_steps_measure_the_cache_at_each_step(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, _ = measurements(strategy)
    monkeypatch.setattr(sequences, "MAX_MEASURE_SECONDS", -1.0)
    found, result = measurements(strategy)
    assert len(found) > len(usual)
    if strategy in ("greedy", "sampling", "dola"):
        assert [event.tokens for event in found] == [*range(len(PROMPT), len(PROMPT) + TOKENS), len(PROMPT) + 20]
    if strategy not in ("contrastive", "beam_search"):
        assert [event.bytes for event in found] == [event.tokens * bytes_per_token() for event in found]
    assert result.metrics is not None
    assert found[-1].bytes == result.metrics.cache_bytes


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_last_measurement_is_that_of_the_end_of_the_run(strategy: str) -> None:
    found, result = measurements(strategy)
    assert result.metrics is not None
    assert found[-1].bytes == result.metrics.cache_bytes
    assert found[-1].tokens >= len(PROMPT) + TOKENS - 1


def test_fast_steps_measure_the_cache_at_every_sixteenth_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MAX_MEASURE_SECONDS", 3600.0)
    found, result = measurements("greedy")
    assert [event.step for event in found] == [0, 16, TOKENS]
    assert sum(isinstance(event, TokenChosen) for event in result.events) == TOKENS
