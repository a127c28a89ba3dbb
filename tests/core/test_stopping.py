"""Stopping criteria, and the reported reason."""

from __future__ import annotations

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.stopping import StoppingCriteria, build_stopping_criteria
from decodescope.core.events import SequenceFinished
from tests.core import tiny
from tests.core.test_text import byte_level


def spelled() -> core.LoadedModel:
    model = tiny.make("llama", vocab_size=260, bos_token_id=0, eos_token_id=1)
    model.tokenizer = byte_level()
    return model


def finish(result: core.Result) -> SequenceFinished:
    return next(event for event in result.events if isinstance(event, SequenceFinished))


def stopping(**more: object) -> StoppingCriteria:
    settings: dict[str, object] = {
        "max_new": 99, "context_limit": None, "eos": frozenset(), "strings": (), "deadline": None, **more
    }  # fmt: skip
    return StoppingCriteria(**settings)  # type: ignore[arg-type]


def test_stop_string_spanning_several_tokens_stops() -> None:
    rules = stopping(strings=("end.", "xyz"))
    assert [rules.check(0, 5, i, text) for i, text in enumerate(["the e", "n", "d"])] == [None] * 3
    stop = rules.check(0, 5, 3, ". And")
    assert stop is not None
    assert (stop.reason, stop.string) == ("stop_string", "end.")


def test_stop_strings_of_several_sequences_do_not_mix() -> None:
    rules = stopping(strings=("ab",))
    assert rules.check(0, 5, 1, "a") is None
    assert rules.check(1, 5, 1, "b") is None
    assert rules.check(0, 5, 2, "b") is not None


def test_end_token_takes_precedence_over_the_limit() -> None:
    stop = stopping(eos=frozenset({2, 9}), max_new=1).check(0, 9, 1, "")
    assert stop is not None
    assert stop.reason == "eos"


@pytest.mark.parametrize("strings", ["zq", ["zq", "qqqq"]])
def test_stop_string_ends_a_run(strings: str | list[str]) -> None:
    """Found in free text first, then the same run is stopped by it."""
    model, free = spelled(), GenerationConfig(do_sample=True, temperature=2.5, top_k=0, max_new_tokens=40)
    text = core.run(model, core.Request("the cat", free, seed=3)).texts[0]
    wanted = text[6:8]
    config = GenerationConfig(
        do_sample=True, temperature=2.5, top_k=0, max_new_tokens=40,
        stop_strings=wanted if isinstance(strings, str) else [wanted, "never in it"],
    )  # fmt: skip
    result = core.run(model, core.Request("the cat", config, seed=3))
    assert wanted in result.texts[0]
    assert text.startswith(result.texts[0])
    assert len(result.texts[0]) < len(text)
    assert (finish(result).reason, finish(result).stop_string) == ("stop_string", wanted)


def test_time_limit() -> None:
    config = GenerationConfig(max_new_tokens=100_000, max_time=0.05, suppress_tokens=[2])
    result = core.run(tiny.make("llama", max_position_embeddings=100_000), core.Request(tiny.prompt(), config))
    assert finish(result).reason == "time"
    assert result.sequences[0]


def test_length_limit_is_reported_as_the_reason() -> None:
    config = GenerationConfig(max_new_tokens=5, suppress_tokens=[2])
    end = finish(core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config)))
    assert (end.reason, end.limit) == ("length", 5)


def test_remaining_context_limits_the_text() -> None:
    assert build_stopping_criteria({"max_new_tokens": 9}, 250, 256).context_limit == 7
    assert build_stopping_criteria({"max_new_tokens": 9}, 250, None).context_limit is None
