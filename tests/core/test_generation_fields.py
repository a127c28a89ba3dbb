"""Every field of transformers' GenerationConfig is applied by a run, or named in a notice."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
import transformers as t

from decodescope import core
from decodescope.core import processors, strategies
from decodescope.core.common import hf_generation as fields
from decodescope.core.errors import CacheError, ParameterError, StrategyError
from tests.core import tiny

WAYS = (
    fields.METADATA_FIELDS, fields.COMMON_FIELDS, fields.PROCESSOR_FIELDS, fields.STRATEGY_FIELDS, fields.SPEECH_FIELDS,
    frozenset(fields.WITHOUT_EFFECT),
)  # fmt: skip
VALUES: dict[str, Any] = {
    "cache_config": {"nbits": 2}, "max_cache_len": 9, "pad_token_id": 7, "assistant_lookbehind": 3,
    "target_lookbehind": 3, "assistant_ensemble_weight": 0.2, "speculation_type": "dflash",
    "compile_config": t.CompileConfig(), "continuous_batching_config": t.ContinuousBatchingConfig(),
}  # fmt: skip
"""Values of fields without effect that are no truths."""


def notices(request: core.Request, model: core.LoadedModel | None = None) -> list[str]:
    events = core.run(model or tiny.shared("llama"), request).events
    return [event.message for event in events if isinstance(event, core.events.Notice)]


def test_every_field_of_the_installed_release_belongs_to_one_class() -> None:
    installed = set(vars(t.GenerationConfig()))
    assert not installed - fields.KNOWN_FIELDS, "say in core/common/hf_generation.py what a run does with these"
    assert sum(map(len, WAYS)) == len(fields.KNOWN_FIELDS)


def test_processor_fields_equal_the_fields_read_by_processors() -> None:
    read = {
        stage.name
        for stage in processors.registry.values()
        if not (stage.parameter is not None and stage.parameter.option)
    }
    assert read == fields.PROCESSOR_FIELDS


def test_strategy_fields_are_parameters_of_a_strategy() -> None:
    read = {p.name for one in strategies.registry.values() for p in one.parameters if not p.option}
    assert fields.STRATEGY_FIELDS - {"num_assistant_tokens_schedule"} <= read
    assert read <= fields.KNOWN_FIELDS


@pytest.mark.parametrize("name", sorted(fields.WITHOUT_EFFECT))
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_field_without_effect_is_named_in_a_notice(name: str) -> None:
    value = VALUES.get(name, True) if name != "use_cache" else False
    reported = notices(core.Request([5, 6], {"max_new_tokens": 2, name: value}))
    assert any(name in message for message in reported), reported
    plain = core.run(tiny.shared("llama"), core.Request([5, 6], {"max_new_tokens": 2})).sequences
    assert core.run(tiny.shared("llama"), core.Request([5, 6], {"max_new_tokens": 2, name: value})).sequences == plain


@pytest.mark.parametrize(
    ("settings", "strategy", "named"),
    [
        ({"temperature": 0.5}, None, "temperature"),
        ({"temperature": 0.5, "do_sample": False}, None, "temperature"),
        ({"top_k": 3}, "greedy", "top_k"),
        ({"early_stopping": True}, None, "early_stopping"),
        ({"length_penalty": 2.0}, None, "length_penalty"),
        ({"diversity_penalty": 2.0, "num_beams": 2}, None, "diversity_penalty"),
        ({"num_assistant_tokens": 3}, None, "num_assistant_tokens"),
        ({"num_assistant_tokens_schedule": "heuristic"}, None, "num_assistant_tokens_schedule"),
        ({"assistant_confidence_threshold": 0.9}, None, "assistant_confidence_threshold"),
        ({"max_matching_ngram_size": 4}, None, "max_matching_ngram_size"),
        ({"num_return_sequences": 3}, None, "num_return_sequences"),
        ({"num_beams": 3}, "greedy", "num_beams"),
        ({"do_sample": True}, "greedy", "do_sample"),
        ({"penalty_alpha": 0.5, "top_k": 4}, "greedy", "penalty_alpha"),
        ({"dola_layers": "low"}, "greedy", "dola_layers"),
        ({"prompt_lookup_num_tokens": 3}, "greedy", "prompt_lookup_num_tokens"),
        ({"assistant_early_exit": 1}, "greedy", "assistant_early_exit"),
        ({"use_mtp": True}, "greedy", "use_mtp"),
        ({"cache_implementation": "quantized"}, None, "cache_implementation"),
        ({"language": "de"}, None, "language"),
    ],
)
def test_field_that_the_run_does_not_read_is_named_in_a_notice(
    settings: dict[str, Any], strategy: str | None, named: str
) -> None:
    reported = notices(core.Request([5, 6], {"max_new_tokens": 2, **settings}, strategy=strategy))
    assert any(named in message for message in reported), reported


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": True, "temperature": 0.5, "top_k": 3},
        {"num_beams": 2, "early_stopping": True, "length_penalty": 2.0},
        {"repetition_penalty": 1.2, "min_new_tokens": 1, "eos_token_id": 4, "stop_strings": None},
        {"temperature": 1.0, "top_k": 50, "use_cache": True, "num_beams": 1},
    ],
)
def test_applied_or_default_fields_cause_no_notice(settings: dict[str, Any]) -> None:
    assert not notices(core.Request([5, 6], {"max_new_tokens": 2, **settings}))


def test_generation_config_of_the_model_causes_no_notice() -> None:
    model = tiny.shared("llama")
    assert not notices(core.Request([5, 6], model.generation_config))


def test_field_of_a_later_release_is_named_in_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = t.GenerationConfig.__init__

    def later(self: t.GenerationConfig, **given: Any) -> None:
        added = given.pop("sparkle", None)
        usual(self, **given)
        self.sparkle = added

    monkeypatch.setattr(t.GenerationConfig, "__init__", later)
    for config in (t.GenerationConfig(max_new_tokens=2, sparkle=3), {"max_new_tokens": 2, "sparkle": 3}):
        reported = notices(core.Request([5, 6], config))
        assert any("sparkle" in message for message in reported), reported


# -- what is not a field at all


@pytest.mark.parametrize("as_object", [False, True])
def test_unknown_setting_error_suggests_a_similar_name(as_object: bool) -> None:
    config: Any = {"temprature": 0.5, "max_new_tokens": 2}
    with pytest.raises(ParameterError, match=r"temprature.*Did you mean “temperature”") as caught:
        core.run(tiny.shared("llama"), core.Request([5, 6], t.GenerationConfig(**config) if as_object else config))
    assert caught.value.parameter == "temprature"


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"config": {"xyzzy": 1}}, ParameterError, "xyzzy"),
        ({"config": {"schedule": "auto"}}, ParameterError, "Greedy has no setting “schedule”"),
        ({"config": core.make_config({"schedule": "auto"}), "strategy": "prompt_lookup"}, ParameterError, "options"),
        ({"options": {"temperature": 0.5}}, ParameterError, "config"),
        ({"options": {"stagess": []}}, ParameterError, "Did you mean “stages”"),
        ({"cache": "quantized", "cache_options": {"nbit": 2}}, ParameterError, "Did you mean “nbits”"),
        ({"cache": "quantised"}, CacheError, "Did you mean “quantized”"),
        ({"strategy": "greddy"}, StrategyError, "Did you mean “greedy”"),
    ],
)
def test_an_unknown_name_is_refused(
    fields: dict[str, Any], error: type[core.errors.DecodescopeError], words: str
) -> None:
    with pytest.raises(error, match=words):
        core.run(tiny.shared("llama"), core.Request([5, 6], **fields))


@pytest.mark.parametrize("options", [{}, {"verifier": "greedy"}])
def test_options_in_a_mapping_of_settings_are_moved_to_options(options: dict[str, Any]) -> None:
    settings = {"max_new_tokens": 3, "schedule": "constant", "verifier": "auto"}
    request = core.Request([5, 6], settings, strategy="prompt_lookup", options=options)
    assert request.config == {"max_new_tokens": 3}
    assert request.options == {"schedule": "constant", "verifier": "auto", **options}
    assert request.settings == {**settings, **options}
    assert settings == {"max_new_tokens": 3, "schedule": "constant", "verifier": "auto"}
    assert core.run(tiny.shared("llama"), request).sequences


@pytest.mark.parametrize("config", [None, {"top_k": 4}, t.GenerationConfig(top_k=4)])
def test_request_with_changed_settings_keeps_the_others(config: Any) -> None:
    request = core.Request([5, 6], config, strategy="sampling", options={"seed_each": True})
    changed = request.with_settings({"top_k": 2, "stages": ["top_k"], "seed_each": None})
    names = ("top_k", "stages", "seed_each", "max_length")
    assert [changed.settings.get(name) for name in names] == [2, ["top_k"], None, None]
    assert request.settings.get("top_k") == (None if config is None else 4)
    assert core.run(tiny.shared("llama"), changed).sequences


def test_unknown_setting_of_replay_step_suggests_a_similar_name() -> None:
    with pytest.raises(ParameterError, match="Did you mean “top_p”"):
        core.replay_step(tiny.shared("llama"), core.Request([5, 6], {"do_sample": True}), [7], 0, {"topp": 0.5})


def test_foreign_settings_in_a_file_cause_a_notice_only(tmp_path: Any) -> None:
    (tmp_path / "generation_config.json").write_text('{"chat_format": "raw", "max_new_tokens": 2}')
    config = t.GenerationConfig.from_pretrained(tmp_path)
    reported = notices(core.Request([5, 6], config))
    assert any("chat_format" in message for message in reported)


def test_model_with_foreign_settings_runs() -> None:
    model = tiny.make("llama")
    model.generation_config.chat_format = "raw"
    assert not notices(core.Request([5, 6], {"max_new_tokens": 2}), model)
    assert not notices(core.Request([5, 6], model.generation_config), model)
    assert core.run(model, core.Request([5, 6], {"max_new_tokens": 2, "chat_format": "raw"})).sequences


# -- token healing


PROMPTS = ("The girl had a ", "Once upon a ti", "A")


def storyteller() -> core.LoadedModel:
    return core.load("storyteller")


@pytest.mark.every(2)
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("more", [{}, {"do_sample": True, "top_k": 5}, {"num_beams": 3}], ids=str)
def test_token_healing_equals_that_of_generate(prompt: str, more: dict[str, Any]) -> None:
    model = storyteller()
    x = model.tokenizer(prompt, return_tensors="pt")
    torch.manual_seed(4)
    config = t.GenerationConfig(max_new_tokens=6, token_healing=True, **more)
    whole = model.model.generate(**x, generation_config=config, tokenizer=model.tokenizer)[0].tolist()
    events = core.run(model, core.Request(prompt, config, seed=4)).events
    begun = [token.id for token in events[0].prompt]  # type: ignore[attr-defined]
    assert whole == [*begun, *core.run(model, core.Request(prompt, config, seed=4)).sequences[0]]
    assert not [event for event in events if isinstance(event, core.events.Notice)]


def test_token_healing_without_a_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="token_healing"):
        core.run(tiny.shared("llama"), core.Request([5, 6], {"token_healing": True}))


def test_token_healing_of_an_encoder_decoder_causes_a_notice() -> None:
    assert any(
        "token_healing" in one
        for one in notices(core.Request([5, 6], {"token_healing": True}, top_n=0), tiny.shared("t5"))
    )


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "settings",
    [
        {"token_healing": True},
        {"token_healing": True, "do_sample": True},
        {"low_memory": True, "num_beams": 2},
        {"assistant_ensemble_weight": 0.2},
        {"speculation_type": "dflash"},
        {"is_assistant": True},
        {"pad_token_id": 7},
        {"use_cache": False},
        {"cache_config": {"nbits": 2}, "max_cache_len": 4},
        {"cache_implementation": "quantized"},
        {"return_dict_in_generate": True, "output_scores": True, "output_attentions": True},
        {"prefill_chunk_size": 2},
        {"disable_compile": True},
    ],
    ids=str,
)
def test_script_generates_the_text_of_the_run(settings: dict[str, Any]) -> None:
    model = storyteller()
    request = core.Request("The girl had a ", {"max_new_tokens": 6, **settings}, seed=3)
    script = core.as_code(request, model=model)
    assert "core.Request" not in script, "generate can do this"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script, "script.py", "exec"), {})
    assert printed.getvalue() == core.run(model, request).texts[0] + "\n"


INVALID_OWN: dict[str, object] = {
    "eos_token_id": -1, "suppress_tokens": [999_999], "begin_suppress_tokens": [-5], "forced_eos_token_id": 999_999,
    "min_length": -1, "repetition_penalty": 0.0, "bad_words_ids": "x", "no_repeat_ngram_size": -1, "max_time": -1.0,
    "num_beams": 0, "temperature": "warm", "top_p": 7.0,
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID_OWN)
def test_invalid_value_of_the_models_own_generation_config_is_named_and_ignored(name: str) -> None:
    model = tiny.make("llama")
    settings = {"max_new_tokens": 4, "do_sample": name in ("temperature", "top_p")}
    expected = core.run(model, core.Request([5, 6], settings))
    setattr(model.generation_config, name, INVALID_OWN[name])
    result = core.run(model, core.Request([5, 6], settings))
    assert result.sequences == expected.sequences
    own = [message for message in notices(core.Request([5, 6], settings), model) if "own generation_config" in message]
    assert len(own) == 1
    assert name in own[0]
    with pytest.raises(ParameterError):
        core.run(model, core.Request([5, 6], {**settings, name: INVALID_OWN[name]}))


def test_valid_ids_of_the_models_own_list_are_kept() -> None:
    model = tiny.make("llama")
    settings = {"max_new_tokens": 4, "do_sample": False}
    first = core.run(model, core.Request([5, 6], settings)).sequences[0][0]
    model.generation_config.suppress_tokens = [first, 999_999]
    result = core.run(model, core.Request([5, 6], settings))
    assert result.sequences == core.run(model, core.Request([5, 6], {**settings, "suppress_tokens": [first]})).sequences
    assert first not in result.sequences[0]
