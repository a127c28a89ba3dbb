"""One mapping holds the settings of a run, each with its source."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.common.run_settings import RunSettings
from decodescope.core.errors import ParameterError
from decodescope.core.settings import merge_settings, resolve_settings
from tests.core import tiny

MODEL = {"max_length": 30, "top_p": 0.8, "use_mtp": True, "chat_format": "raw", "grammar": "x", "num_beams": 3}


def merged(config: Any = None, strategy: str | None = None, **options: Any) -> RunSettings:
    return merge_settings(core.Request([5, 6], config, strategy, options), MODEL)


def test_sources_in_order_of_precedence() -> None:
    settings = merged({"temperature": 0.5, "num_beams": 2}, "greedy", stages=["top_k"])
    assert settings.from_sources("flags") == {
        "do_sample": False,
        "num_beams": 1,
        "penalty_alpha": None,
        "dola_layers": None,
    }
    assert settings.from_sources("request") == {"temperature": 0.5, "stages": ["top_k"]}
    assert settings.from_sources("model") == {"max_length": 30, "top_p": 0.8}
    assert settings.from_sources("library")["top_k"] == 50
    assert merged(strategy="beam_search").from_sources("strategy") == {"num_beams": 4}
    assert merged().get("num_beams") == 3


@pytest.mark.parametrize(
    ("config", "lengths"),
    [
        ({}, (None, 30)),
        ({"max_new_tokens": 4}, (4, None)),
        ({"max_length": 9}, (None, 9)),
        (GenerationConfig(max_length=9), (None, 9)),
    ],
)
def test_a_length_of_the_request_replaces_that_of_the_model(
    config: Any, lengths: tuple[int | None, int | None]
) -> None:
    settings = merged(config)
    assert (settings.get("max_new_tokens"), settings.get("max_length")) == lengths


def test_generation_config_of_a_run_has_no_options_and_all_values_of_the_model() -> None:
    config = merged({"top_k": 4}, "sampling", stages=["top_k"], seed_each=True).config
    assert (config.top_k, config.top_p, config.chat_format, config.grammar) == (4, 0.8, "raw", "x")
    assert not hasattr(config, "stages")
    assert not hasattr(config, "seed_each")


def test_values_of_a_model_that_are_no_settings_do_not_act_as_options() -> None:
    settings = merged(GenerationConfig(grammar="x", chat_format="raw"))
    assert not {"grammar", "chat_format", "use_mtp"} & settings.keys()


def test_a_value_out_of_range_is_named_by_an_estimate_too() -> None:
    request = core.Request([5, 6], {"encoder_repetition_penalty": -1.0})
    with pytest.raises(ParameterError, match="encoder_repetition_penalty"):
        core.estimate(tiny.shared("llama"), request)


def test_plug_ins_read_settings_as_before() -> None:
    model = tiny.shared("llama")
    request = core.Request([5, 6], {"top_k": 4, "do_sample": True}, "sampling", {"stages": ["top_k"]})
    strategy, settings = resolve_settings(model, request)
    context = core.processors.Context(model, settings, 2, 9, None, None, 1, torch.zeros)
    assert (context.config.top_k, context.options["stages"]) == (4, ["top_k"])
    assert strategy.rows(settings.config, 61) == 1
