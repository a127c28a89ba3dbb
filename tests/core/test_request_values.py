"""Invalid values of a request raise an error that names the setting, before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import CacheError, DecodescopeError, ParameterError, PromptError, StrategyError
from decodescope.core.strategies import registry
from tests.core import tiny

MODEL = "llama"
SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"eos_token_id": "</s>"}, "eos_token_id"),
    ({"eos_token_id": 2**63}, "eos_token_id"),
    ({"eos_token_id": [3, "x"]}, "eos_token_id"),
    ({"stop_strings": float("-inf")}, "stop_strings"),
    ({"stop_strings": [1]}, "stop_strings"),
    ({"suppress_tokens": [-1]}, "suppress_tokens"),
    ({"suppress_tokens": [61]}, "suppress_tokens"),
    ({"suppress_tokens": "all"}, "suppress_tokens"),
    ({"begin_suppress_tokens": [10**9]}, "begin_suppress_tokens"),
    ({"bad_words_ids": [5]}, "bad_words_ids"),
    ({"bad_words_ids": [[]]}, "bad_words_ids"),
    ({"bad_words_ids": [[5, 61]]}, "bad_words_ids"),
    ({"sequence_bias": [[5, 1.0]]}, "sequence_bias"),
    ({"sequence_bias": [[[99], 1.0]]}, "sequence_bias"),
    ({"sequence_bias": {(5,): "x"}}, "sequence_bias"),
    ({"exponential_decay_length_penalty": 3}, "exponential_decay_length_penalty"),
    ({"exponential_decay_length_penalty": [1, float("nan")]}, "exponential_decay_length_penalty"),
    ({"forced_bos_token_id": 61}, "forced_bos_token_id"),
    ({"forced_bos_token_id": float("inf")}, "forced_bos_token_id"),
    ({"forced_eos_token_id": [99]}, "forced_eos_token_id"),
    ({"force_words_ids": [0]}, "force_words_ids"),
    ({"force_words_ids": 7}, "force_words_ids"),
    ({"do_sample": True, "top_p": "x"}, "top_p"),
    ({"do_sample": True, "temperature": float("nan")}, "temperature"),
    ({"do_sample": True, "temperature": float("inf")}, "temperature"),
    ({"do_sample": True, "temperature": 10**5000}, "temperature"),
    ({"do_sample": "yes"}, "do_sample"),
    ({"penalty_alpha": "x"}, "penalty_alpha"),
    ({"top_k": "x"}, "top_k"),
    ({"num_beams": 2.5}, "num_beams"),
    ({"num_beams": 2, "early_stopping": "soon"}, "early_stopping"),
    ({"num_beams": 2, "length_penalty": "x"}, "length_penalty"),
    ({"num_return_sequences": "x"}, "num_return_sequences"),
    ({"max_length": "x"}, "max_length"),
    ({"max_new_tokens": float("inf")}, "max_new_tokens"),
    ({"max_time": "x"}, "max_time"),
    ({"dola_layers": "middle"}, "dola_layers"),
    ({"dola_layers": [0.5]}, "dola_layers"),
    ({"dola_layers": 99}, "dola_layers"),
    ({"watermarking_config": 5}, "Pass a WatermarkingConfig"),
    ({"watermarking_config": {"greenlist_ratio": "x"}}, "Pass a WatermarkingConfig"),
    ({"watermarking_config": {"colour": 5}}, "Pass a WatermarkingConfig"),
    ({"prompt_lookup_num_tokens": "x"}, "prompt_lookup_num_tokens"),
    ({"assistant_early_exit": "x"}, "assistant_early_exit"),
    ({"guidance_scale": "x"}, "guidance_scale"),
    ({"num_assistant_tokens_schedule": "sometimes"}, "num_assistant_tokens_schedule"),
    ({"remove_invalid_values": 1}, "remove_invalid_values"),
]


@pytest.mark.parametrize(("settings", "name"), SETTINGS, ids=[f"{place} {n}" for place, (_, n) in enumerate(SETTINGS)])
def test_invalid_setting_is_named(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=name) as caught:
        core.run(tiny.shared(MODEL), core.Request([5, 6], {"max_new_tokens": 3, **settings}))
    assert caught.value.remedy
    assert len(caught.value.cause) < 300


READ_BY = [
    (strategy, settings, name)
    for settings, name in (SETTINGS[0], SETTINGS[5], SETTINGS[25], SETTINGS[33])
    for strategy in registry
    if any(name in (parameter.name, "max_length") for parameter in registry[strategy].parameters)
]
"""Some settings with each strategy that reads them."""


@pytest.mark.parametrize(("strategy", "settings", "name"), READ_BY)
def test_invalid_setting_is_named_under_every_strategy(strategy: str, settings: dict[str, Any], name: str) -> None:
    model = tiny.shared(MODEL)
    own = {"temperature": float("inf")} if name == "temperature" else settings
    drafters = (model,) if registry[strategy].takes_drafters else ()
    with pytest.raises(ParameterError, match=name):
        core.run(model, core.Request([5, 6], own, strategy=strategy), drafters=drafters)


FIELDS: list[tuple[dict[str, Any], type[DecodescopeError], str]] = [
    ({"seed": "x"}, ParameterError, "seed"),
    ({"seed": 2**70}, ParameterError, "seed"),
    ({"top_n": "x"}, ParameterError, "top_n"),
    ({"top_n": -1}, ParameterError, "top_n"),
    ({"options": 5}, ParameterError, "options"),
    ({"options": {5: 5}}, ParameterError, "options"),
    ({"cache_options": [1]}, ParameterError, "cache_options"),
    ({"cache_options": {"folder": "a\0b"}, "cache": "offloaded"}, ParameterError, "folder"),
    ({"cache_options": {"nbits": "x"}, "cache": "quantized"}, ParameterError, "nbits"),
    ({"cache": 5}, CacheError, "5"),
    ({"cache": ["dynamic"]}, CacheError, "dynamic"),
    ({"strategy": ["greedy"]}, StrategyError, "greedy"),
    ({"config": 5}, ParameterError, "config"),
    ({"config": {5: 5}}, ParameterError, "config"),
    ({"prompt": None}, PromptError, "null"),
    ({"prompt": ["one", "two"]}, PromptError, "one"),
    ({"strategy": "prompt_lookup", "options": {"schedule": 5}}, ParameterError, "schedule"),
    ({"strategy": "constrained_beam_search", "options": {"must_contain": 5}}, ParameterError, "must_contain"),
    ({"drafters": ("x",), "strategy": "assisted"}, StrategyError, "draft"),
    ({"drafters": 5, "strategy": "assisted"}, StrategyError, "draft"),
    ({"negative_prompt": 5, "config": {"guidance_scale": 2.0}}, PromptError, "prompt"),
]


@pytest.mark.parametrize(("fields", "error", "word"), FIELDS, ids=[f"{list(f.items())[-1]}"[:60] for f, _, _ in FIELDS])
def test_invalid_request_field_is_named(fields: dict[str, Any], error: type[DecodescopeError], word: str) -> None:
    with pytest.raises(error, match=word):
        core.run(tiny.shared(MODEL), replace(core.Request([5, 6], {"max_new_tokens": 3}), **fields))


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"cache": ""}, CacheError), ({"cache": "pocket"}, CacheError), ({"beginning": 5}, PromptError)],
    ids=str,
)
def test_estimate_of_an_invalid_request_is_refused(fields: dict[str, Any], error: type[DecodescopeError]) -> None:
    with pytest.raises(error) as caught:
        core.estimate(tiny.shared(MODEL), replace(core.Request([5, 6]), **fields))
    assert caught.value.remedy


@pytest.mark.parametrize(
    "call",
    [
        lambda: core.run("storyteller", core.Request("Once")),  # type: ignore[arg-type]
        lambda: core.score("storyteller", "Once"),  # type: ignore[arg-type]
        lambda: core.estimate("storyteller", core.Request("Once")),  # type: ignore[arg-type]
        lambda: core.estimate(tiny.shared(MODEL), 5),  # type: ignore[arg-type]
        lambda: core.effective_settings(tiny.shared(MODEL), "Once"),  # type: ignore[arg-type]
        lambda: core.as_code("Once"),  # type: ignore[arg-type]
        lambda: list(core.replay(5)),  # type: ignore[arg-type]
        lambda: core.media.inspect(None),
        lambda: core.media.picture(5),
        lambda: core.load("storyteller", device=None),  # type: ignore[arg-type]
        lambda: core.load("storyteller", device="meta"),
    ],
)
def test_wrong_object_types_raise_an_error_with_a_remedy(call: Callable[[], object]) -> None:
    with pytest.raises(DecodescopeError) as caught:
        call()
    assert caught.value.cause
    assert caught.value.remedy


@pytest.mark.parametrize("start", ["x", [], 99, -1, 2**70])
def test_invalid_decoder_start_token_raises_prompt_error(start: object) -> None:
    with pytest.raises(PromptError, match="decoder_start_token_id"):
        core.run(tiny.shared("t5"), core.Request([5, 6], {"decoder_start_token_id": start}))


@pytest.mark.parametrize("settings", [{"suppress_tokens": []}, {"bad_words_ids": []}, {"sequence_bias": {}}])
def test_empty_list_has_no_effect(settings: dict[str, Any]) -> None:
    model = tiny.shared(MODEL)
    plain = core.run(model, core.Request([5, 6], {"max_new_tokens": 3}))
    assert core.run(model, core.Request([5, 6], {"max_new_tokens": 3, **settings})).sequences == plain.sequences


def test_end_token_beyond_the_vocabulary_is_ignored() -> None:
    config = {"max_new_tokens": 3, "eos_token_id": [500], "min_new_tokens": 2}
    assert len(core.run(tiny.shared(MODEL), core.Request([5, 6], config)).sequences[0]) == 3


@pytest.mark.parametrize("request_", [None, "Once upon a time", {"prompt": "Once"}])
def test_non_request_argument_raises_parameter_error(request_: Any, tmp_path: Path) -> None:
    """The error does not blame the model, and no file is created."""
    with pytest.raises(ParameterError, match=r"not a decodescope\.Request"):
        core.stream(tiny.make("llama"), request_)
    with pytest.raises(ParameterError, match=r"not a decodescope\.Request"):
        core.record(tmp_path / "run", iter(()), request_)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("auto\x00", r"is “auto\\x00”\. Choose one of"),
        ("auto\n\x1b[2J", r"is “auto\\n\\x1b\[2J”\."),
        ("é" * 10**6, r"is “é{59}…”\."),
        ("\ud800", r"is “\\ud800”\."),
    ],
)
def test_a_text_is_quoted_on_one_line(value: str, words: str) -> None:
    request = core.Request("Once", strategy="prompt_lookup", options={"schedule": value})
    with pytest.raises(ParameterError, match=words) as caught:
        core.run(tiny.shared("llama"), request)
    assert len(str(caught.value)) < 300
