"""The API of OpenAI, without a network: calls are checked and become requests, and events become answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from decodescope.app.storage.programs import llama_cpp
from decodescope.core.errors import DecodescopeError, ParameterError, PromptTooLongError
from decodescope.core.events import (
    Alternative,
    Event,
    Finished,
    Metrics,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.processors.pipeline_stages import stage_order
from decodescope.core.request import Request
from decodescope.core.server import ApiError, ApiResponse, CompletionCall, ServedModel
from decodescope.core.server.call_fields import CHAT_ONLY, IGNORED, REFUSED, SAMPLERS
from decodescope.core.server.openai_api import parse_call, to_api_error
from tests.core.complete_answers import write_answer

MODEL = ServedModel("tiny", context=64, created=1)
HELLO = [{"role": "user", "content": "Hello"}]


def chat(**fields: object) -> CompletionCall:
    return parse_call({"model": "tiny", "messages": HELLO, **fields}, MODEL, is_chat=True)


def text(**fields: object) -> CompletionCall:
    return parse_call({"model": "tiny", "prompt": "Once", **fields}, MODEL, is_chat=False)


def _token(step: int, piece: str, sequence: int = 0, special: bool = False, shown: str | None = None) -> TokenChosen:
    others = (
        Alternative(step, piece, 0.5, 0.5, -0.5, -0.5, 1),
        Alternative(99, "other", 0.25, 0.0, -1.5, float("-inf"), 2),
    )
    return TokenChosen(
        step, sequence, step, piece, ("" if special else piece) if shown is None else shown, 0.5, 0.5, -0.5, -0.5, 1,
        1.0, 0.1, others, special=special,
    )  # fmt: skip


def _events(*pieces: str, ending: str = "length", stop: str = "", sequences: int = 1, reason: str = "completed"):
    def run(request: Request) -> Iterator[Event]:
        yield RunStarted("greedy", "tiny", "cpu", "float32", "dynamic", 0, (PromptToken(1, "Once"),), ())
        for step, piece in enumerate(pieces):
            for sequence in range(sequences):
                yield _token(step, piece, sequence)
        for sequence in range(sequences):
            yield SequenceFinished(sequence, ending, stop_string=stop)
        yield Finished(reason, ((),) * sequences, ("",) * sequences, Metrics())

    return run


def _streamed(call: CompletionCall, events: Any) -> list[dict[str, Any]]:
    answer, chunks = ApiResponse(call), []
    for request in call.requests():
        answer.begin()
        for event in events(request):
            chunks += answer.feed(event)
    last = answer.last_chunk()
    return json.loads(json.dumps([*chunks, *([last] if last else [])]))


def test_a_chat_with_defaults_samples_at_temperature_one_without_filters():
    (request,) = chat(seed=7).requests()
    assert request.prompt == tuple(HELLO)
    assert (request.strategy, request.seed) == ("sampling", 7)
    off = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "max_new_tokens": 64}
    assert off.items() <= request.settings.items()


def test_temperature_zero_selects_greedy_decoding():
    (request,) = text(temperature=0, max_tokens=5).requests()
    assert request.strategy == "greedy"
    assert not {"temperature", "top_p", "top_k"} & request.settings.keys()
    assert request.settings["max_new_tokens"] == 5


def test_settings_are_mapped_to_those_of_the_program():
    schema = {"type": "object"}
    call = chat(
        stop=["END", "\n"], logit_bias={"5": -100, "6": 2.5, "7": 0}, n=3, top_p=0.5, top_k=4, min_p=0.1, seed=-2,
        repetition_penalty=1.2, frequency_penalty=0.5, presence_penalty=-1, max_completion_tokens=9,
        top_logprobs=15, logprobs=True,
        response_format={"type": "json_schema", "json_schema": {"name": "card", "schema": schema}},
    )  # fmt: skip
    (request,) = call.requests()
    assert request.settings == {
        "do_sample": True, "temperature": 1.0, "top_p": 0.5, "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.2,
        "frequency_penalty": 0.5, "presence_penalty": -1.0, "max_new_tokens": 9,
        "stop_strings": ["END", "\n"], "sequence_bias": [[[5], -100.0], [[6], 2.5]],
        "grammar": {"json_schema": schema}, "num_return_sequences": 3, "seed_each": True,
    }  # fmt: skip
    assert (request.seed, request.top_n) == (2**31 - 2, 15)


def test_each_prompt_of_a_list_is_a_request():
    assert [request.prompt for request in text(prompt=["a", "b"]).requests()] == ["a", "b"]
    assert [request.prompt for request in text(prompt=[1, 2]).requests()] == [(1, 2)]
    assert [request.prompt for request in text(prompt=[[1], [2, 3]]).requests()] == [(1,), (2, 3)]


def test_parts_of_text_in_a_message_are_joined_and_developer_is_system():
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    call = chat(messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}])
    assert call.prompts == (({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}),)


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"model": "gpt-4"}, "model", 404),
        ({"model": None}, "model", 400),
        ({"messages": []}, "messages", 400),
        ({"messages": ["x"]}, "messages[0]", 400),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", 400),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]", 400),
        ({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]}, "messages[0].tool_calls", 400),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", 400),
        ({"temperature": 2.1}, "temperature", 400),
        ({"temperature": True}, "temperature", 400),
        ({"top_p": "1"}, "top_p", 400),
        ({"n": 0}, "n", 400),
        ({"n": 1.5}, "n", 400),
        ({"max_tokens": 0}, "max_tokens", 400),
        ({"seed": "7"}, "seed", 400),
        ({"stop": [""]}, "stop", 400),
        ({"stop": ["x"] * 17}, "stop", 400),
        ({"logit_bias": {"a": 1}}, "logit_bias", 400),
        ({"logit_bias": {"1": 101}}, "logit_bias", 400),
        ({"logit_bias": [1]}, "logit_bias", 400),
        ({"response_format": {"type": "xml"}}, "response_format", 400),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}, "response_format", 400),
        ({"top_logprobs": 2}, "top_logprobs", 400),
        ({"logprobs": 2}, "logprobs", 400),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", 400),
        ({"stream": 1}, "stream", 400),
        ({"stream_options": {"include_usage": True}}, "stream_options", 400),
        ({"presence_penalty": 2.5}, "presence_penalty", 400),
        ({"frequency_penalty": "1"}, "frequency_penalty", 400),
        ({"tools": [{}]}, "tools", 400),
        ({"tool_choice": "required"}, "tool_choice", 400),
        ({"modalities": ["audio"]}, "modalities", 400),
        ({"reasoning_effort": 3}, "reasoning_effort", 400),
        ({"reasoning_format": "deepseek-legacy"}, "reasoning_format", 400),
        ({"include_reasoning": 1}, "include_reasoning", 400),
        ({"chat_template_kwargs": []}, "chat_template_kwargs", 400),
        ({"store": True}, "store", 400),
        ({"unheard_of": 1}, "unheard_of", 400),
    ],
)
def test_a_wrong_or_unsupported_field_is_refused_by_name(fields, param, status):
    with pytest.raises(ApiError) as refused:
        chat(**fields)
    assert (refused.value.param, refused.value.status) == (param, status)
    assert refused.value.body["error"].keys() == {"message", "type", "param", "code"}
    assert refused.value.message.endswith(".")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": ["a"] * 17}, "prompt"),
        ({"echo": True}, "echo"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"logprobs": 21}, "logprobs"),
        ({"messages": HELLO}, "messages"),
    ],
)
def test_a_wrong_field_of_a_text_completion_is_refused_by_name(fields, param):
    with pytest.raises(ApiError) as refused:
        text(**fields)
    assert refused.value.param == param


def test_values_without_effect_are_accepted():
    call = chat(
        presence_penalty=0, frequency_penalty=0.0, tools=[], tool_choice="none", user="me", store=False, metadata={},
        response_format={"type": "text"}, modalities=["text"], service_tier="auto", logit_bias=None,
    )  # fmt: skip
    assert "grammar" not in call.settings


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(ApiError):
        parse_call([1], MODEL, is_chat=True)


def test_a_complete_chat_answer_has_text_reason_and_usage():
    body = write_answer(chat(logprobs=True, top_logprobs=1), _events("Hi", " you", ending="eos"))
    (choice,) = body["choices"]
    assert body["object"] == "chat.completion"
    assert choice["message"] == {"role": "assistant", "content": "Hi you", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert body["usage"] == {
        "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3,
        "completion_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    assert choice["logprobs"]["content"][0] == {
        "token": "Hi", "logprob": -0.5, "bytes": [72, 105],
        "top_logprobs": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105]}],
    }  # fmt: skip


def test_a_complete_text_answer_has_offsets_and_alternatives():
    body = write_answer(text(logprobs=2, temperature=0), _events("Hi", " you"))
    (choice,) = body["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("Hi you", "length")
    assert choice["logprobs"] == {
        "tokens": ["Hi", " you"], "token_logprobs": [-0.5, -0.5], "text_offset": [0, 2],
        "top_logprobs": [{"Hi": -0.5, "other": -1.5}, {" you": -0.5, "other": -1.5}],
    }  # fmt: skip


def test_the_chunks_of_a_stream_add_up_to_the_complete_answer():
    events = _events("Hi", " you", sequences=2)
    chunks = _streamed(chat(stream=True, n=2, stream_options={"include_usage": True}), events)
    texts = {0: "", 1: ""}
    for chunk in chunks[:-1]:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
    assert texts == {0: "Hi you", 1: "Hi you"}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-3:-1]] == ["length", "length"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 4
    assert chunks[-1]["usage"]["total_tokens"] == 5
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_the_stop_string_is_not_in_the_answer_and_its_beginning_is_held_back():
    events = _events("a", " S", "TO", "x", " ST", "OP", ending="stop_string", stop=" STOP")
    call = text(stop=" STOP", stream=True, logprobs=0)
    chunks = _streamed(call, events)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["a", " STOx", ""]
    body = write_answer(text(stop=" STOP", logprobs=0), events)
    assert body["choices"][0]["text"] == "a STOx"
    assert body["choices"][0]["logprobs"]["tokens"] == ["a", " S", "TO", "x"]
    assert body["choices"][0]["finish_reason"] == "stop"


def test_greedy_decoding_runs_once_for_several_choices():
    call = text(n=3, temperature=0)
    assert len(call.requests()) == 1
    assert "num_return_sequences" not in call.requests()[0].settings
    body = write_answer(call, _events("Hi"))
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [(0, "Hi"), (1, "Hi"), (2, "Hi")]


def test_control_tokens_are_not_part_of_the_answer():
    def run(request: Request) -> Iterator[Event]:
        yield from (_token(0, "Hi"), _token(1, "<|end|>", special=True))
        yield from (SequenceFinished(0, "eos"), Finished("completed", ((),), ("",), Metrics()))

    (choice,) = write_answer(chat(logprobs=True), run)["choices"]
    assert choice["message"]["content"] == "Hi"
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == ["Hi"]


def test_the_bytes_of_an_incomplete_character_are_escaped():
    def run(request: Request) -> Iterator[Event]:
        yield from (_token(0, "⟨E4⟩", shown=""), _token(1, "⟨BD⟩⟨A0⟩", shown="你"))
        yield from (SequenceFinished(0, "eos"), Finished("completed", ((),), ("",), Metrics()))

    (choice,) = write_answer(chat(logprobs=True), run)["choices"]
    assert choice["message"]["content"] == "你"
    assert [entry["bytes"] for entry in choice["logprobs"]["content"]] == [[0xE4], [0xBD, 0xA0]]
    assert choice["logprobs"]["content"][0]["token"] == "bytes:\\xe4"


def test_a_run_that_was_stopped_is_an_error_of_the_server():
    with pytest.raises(ApiError) as stopped:
        write_answer(chat(), _events("Hi", reason="stopped"))
    assert (stopped.value.status, stopped.value.code) == (503, "stopped")


@pytest.mark.parametrize(
    ("error", "status", "param", "code"),
    [
        (PromptTooLongError(100, 64), 400, "messages", "context_length_exceeded"),
        (ParameterError("Wrong.", "Change it.", "sequence_bias"), 400, "logit_bias", None),
        (ParameterError("Wrong.", "Change it.", "top_k"), 400, "top_k", None),
        (DecodescopeError("Something."), 400, None, None),
        (RuntimeError("secret path"), 500, None, None),
    ],
)
def test_exceptions_of_a_run_are_translated(error, status, param, code):
    translated = to_api_error(error, "messages")
    assert (translated.status, translated.param, translated.code) == (status, param, code)
    assert "secret" not in translated.message


CHAT_FIELDS = {
    "messages": HELLO, "model": "tiny", "audio": {}, "frequency_penalty": 0.5, "function_call": {"name": "f"},
    "functions": [{"name": "f"}], "logit_bias": {"5": 1}, "logprobs": True, "max_completion_tokens": 3, "max_tokens": 3,
    "metadata": {"a": "b"}, "modalities": ["text", "audio"], "moderation": {"model": "m"}, "n": 2,
    "parallel_tool_calls": True, "prediction": {"type": "content", "content": "Hi"}, "presence_penalty": -0.5,
    "prompt_cache_key": "k", "prompt_cache_options": {}, "prompt_cache_retention": "24h", "reasoning_effort": "high",
    "response_format": {"type": "json_object"}, "safety_identifier": "me", "seed": 3, "service_tier": "priority",
    "stop": "END", "store": True, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
    "tool_choice": "required", "tools": [{"type": "function"}], "top_logprobs": 2, "top_p": 0.5, "user": "me",
    "verbosity": "high", "web_search_options": {},
}  # fmt: skip
"""Every field of `openai.types.chat.completion_create_params` (openai 3.57), with a value that has an effect."""
TEXT_FIELDS = {
    "prompt": "Once", "model": "tiny", "best_of": 2, "echo": True, "frequency_penalty": 0.5, "logit_bias": {"5": 1},
    "logprobs": 2, "max_tokens": 3, "n": 2, "presence_penalty": 0.5, "seed": 3, "stop": ["a", "b"], "stream": True,
    "stream_options": {"include_usage": True}, "suffix": "end", "temperature": 0.5, "top_p": 0.5, "user": "me",
}  # fmt: skip
"""The same of `openai.types.completion_create_params`."""
NEEDED = {"stream_options": {"stream": True}, "top_logprobs": {"logprobs": True}}
IGNORED_BY_OPENAI_NAME = {
    "metadata", "parallel_tool_calls", "prediction", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "safety_identifier", "service_tier", "user",
}  # fmt: skip
REFUSED_BY_OPENAI_NAME = {
    "audio", "function_call", "functions", "modalities", "moderation", "store", "tool_choice",
    "tools", "verbosity", "web_search_options", "best_of", "echo", "suffix",
}  # fmt: skip


def _call_of(name: str, value: object, is_chat: bool) -> CompletionCall:
    required = {"model": "tiny", **({"messages": HELLO} if is_chat else {"prompt": "Once"})}
    return parse_call({"seed": 1, **required, **NEEDED.get(name, {}), name: value}, MODEL, is_chat)


@pytest.mark.parametrize(
    ("name", "value", "is_chat"),
    [*((*item, True) for item in CHAT_FIELDS.items()), *((*item, False) for item in TEXT_FIELDS.items())],
)
def test_each_field_of_openais_schema_is_honoured_ignored_or_refused_by_name(name, value, is_chat):
    without = parse_call(
        {"seed": 1, "model": "tiny", **({"messages": HELLO} if is_chat else {"prompt": "A"}), **NEEDED.get(name, {})},
        MODEL, is_chat,
    )  # fmt: skip
    if name in REFUSED_BY_OPENAI_NAME:
        with pytest.raises(ApiError) as refused:
            _call_of(name, value, is_chat)
        assert (refused.value.param, refused.value.code) == (name, "unsupported_parameter")
        assert f"{name} is not supported: " in refused.value.message
        assert "Remove it" in refused.value.message
    elif name in IGNORED_BY_OPENAI_NAME:
        assert _call_of(name, value, is_chat) == (
            without if is_chat else parse_call({"seed": 1, "model": "tiny", "prompt": "Once"}, MODEL, is_chat=False)
        )
    elif name not in ("model", "messages"):
        assert _call_of(name, value, is_chat) != without


LLAMA_CPP_FIELDS = {
    "verbose": True, "timings_per_token": True, "stream": True, "stream_options": {"include_usage": True},
    "cache_prompt": False, "return_tokens": True, "return_progress": True, "sse_ping_interval": 5, "n_predict": 3,
    "max_tokens": 3, "n_indent": 2, "n_keep": 5, "n_discard": 4, "n_cmpl": 2, "n": 2, "n_cache_reuse": 9,
    "t_max_predict_ms": 100, "response_fields": ["content"], "top_k": 4, "top_p": 0.5, "min_p": 0.1, "top_n_sigma": 1,
    "xtc_probability": 0.5, "xtc_threshold": 0.2, "typical_p": 0.9, "temperature": 0.5, "dynatemp_range": 0.5,
    "dynatemp_exponent": 2, "repeat_last_n": 64, "repeat_penalty": 1.2, "frequency_penalty": 0.5,
    "presence_penalty": 0.5, "dry_multiplier": 0.5, "dry_base": 2, "dry_allowed_length": 3, "dry_penalty_last_n": 64,
    "mirostat": 2, "mirostat_tau": 4, "mirostat_eta": 0.2, "adaptive_target": 0.5, "adaptive_decay": 0.5, "seed": 3,
    "n_probs": 3, "logprobs": True, "min_keep": 3, "backend_sampling": True, "post_sampling_probs": True,
    "lora": [{"id": 0, "scale": 1}], "dry_sequence_breakers": ["#"], "json_schema": {"type": "object"},
    "grammar": 'root ::= "a"', "grammar_type": "user", "grammar_lazy": True, "chat_format": 1,
    "reasoning_format": "none", "generation_prompt": "x", "parse_tool_calls": True, "chat_parser": "x",
    "continue_final_message": True, "echo": True, "preserved_tokens": ["x"], "grammar_triggers": [{"type": 0}],
    "reasoning_control": True, "reasoning_budget_tokens": 5, "reasoning_budget_start_tag": "x",
    "reasoning_budget_end_tags": ["x"], "reasoning_budget_end_tag": "x", "reasoning_budget_message": "Enough.",
    "logit_bias": [[5, 1.5]], "ignore_eos": True, "stop": ["x"], "samplers": ["top_k", "temperature"], "id_slot": 1,
    "chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low", "add_generation_prompt": False,
    "parallel_tool_calls": True, "response_format": {"type": "json_object"}, "tools": [{}], "tool_choice": "required",
}  # fmt: skip
"""Every field of llama.cpp's server (server-schema.cpp and `oaicompat_chat_params_parse`), with an effective value."""
VLLM_FIELDS = {
    "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.2, "length_penalty": 2, "use_beam_search": True,
    "thinking_token_budget": 5, "include_reasoning": False, "watermarking": True, "stop_token_ids": [3],
    "include_stop_str_in_output": True, "ignore_eos": True, "min_tokens": 3, "skip_special_tokens": False,
    "spaces_between_special_tokens": False, "truncate_prompt_tokens": 5, "truncation_side": "left",
    "prompt_logprobs": 1, "logprob_token_ids": [1], "allowed_token_ids": [1], "bad_words": ["x"], "echo": True,
    "add_generation_prompt": False, "continue_final_message": True, "add_special_tokens": True, "documents": [{}],
    "chat_template": "x", "chat_template_kwargs": {"a": 1}, "media_io_kwargs": {"a": {}}, "mm_processor_kwargs": {},
    "structured_outputs": {"choice": ["a", "b"]}, "priority": 1, "request_id": "a", "session_id": "a",
    "return_tokens_as_token_ids": True, "return_token_ids": True, "routed_experts_prompt_start": 1,
    "return_token_offsets": True, "return_prompt_text": True, "mm_payload": "x", "return_mm_kwargs": True,
    "cache_salt": "a", "kv_transfer_params": {"a": 1}, "ec_transfer_params": {"a": 1}, "vllm_xargs": {"a": 1},
    "repetition_detection": {"a": 1}, "stream_interval": 5, "prompt_embeds": "x", "reasoning_effort": "low",
    "parallel_tool_calls": False, "seed": 3, "user": "me",
}  # fmt: skip
"""Every field of vLLM 0.25 that OpenAI's API does not have, with an effective value."""
NEEDED_BY = {
    "xtc_threshold": {"xtc_probability": 0.5}, "repeat_last_n": {"repeat_penalty": 1.2},
    "dynatemp_exponent": {"dynatemp_range": 0.5}, "mirostat_tau": {"mirostat": 2}, "mirostat_eta": {"mirostat": 2},
    **{name: {"dry_multiplier": 1} for name in
       ("dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers")},
    "samplers": {"top_k": 5}, "stream_options": {"stream": True},
}  # fmt: skip
"""Fields without which another one has no effect."""
OTHER_RULES = {"add_special_tokens", "repeat_last_n"}
"""Fields that are refused by a function."""


@pytest.mark.parametrize(
    ("name", "value"),
    [*LLAMA_CPP_FIELDS.items(), *(item for item in VLLM_FIELDS.items() if item not in LLAMA_CPP_FIELDS.items())],
)
def test_each_field_of_llama_cpp_and_vllm_is_applied_ignored_or_refused_by_name(name, value):
    needed = {"seed": 1} | NEEDED_BY.get(name, {})
    without = chat(**needed)
    if name in REFUSED or name in OTHER_RULES:
        with pytest.raises(ApiError) as refused:
            chat(**needed, **{name: value})
        assert (refused.value.param, refused.value.code) == (name, "unsupported_parameter")
        assert "Remove it" in refused.value.message
    elif name in IGNORED:
        assert chat(**needed, **{name: value}) == without
    else:
        assert chat(**{**needed, name: value}) != without


@pytest.mark.parametrize("name", [*REFUSED, *CHAT_ONLY])
def test_a_refused_field_is_accepted_with_the_value_of_its_remedy(name):
    rule = {**REFUSED, **CHAT_ONLY}[name]
    without = text(seed=1)
    for value in rule.neutral:
        assert text(seed=1, **{name: value}) == without


@pytest.mark.slow
def test_lists_of_fields_are_those_of_the_openai_package():
    types = pytest.importorskip("openai.types")
    chat_types = pytest.importorskip("openai.types.chat.completion_create_params")
    text_types = pytest.importorskip("openai.types.completion_create_params")
    assert types
    for known, found in ((CHAT_FIELDS, chat_types), (TEXT_FIELDS, text_types)):
        assert known.keys() - {"stream"} == found.CompletionCreateParamsBase.__annotations__.keys() - {"stream"}


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        ({"top_k": 4, "min_p": 0.1, "repeat_penalty": 1.2}, {"top_k": 4, "min_p": 0.1, "repetition_penalty": 1.2}),
        ({"top_k": -1, "typ_p": 0.9, "top_n_sigma": -1}, {"top_k": 0, "typical_p": 0.9, "top_n_sigma": None}),
        ({"rep_pen": 1.3, "rep_pen_range": 0}, {"repetition_penalty": 1.0}),
        ({"repeat_penalty": 1.0, "repeat_last_n": 64}, {"repetition_penalty": 1.0}),
        ({"xtc_probability": 0.5, "xtc_threshold": 0.2}, {"xtc_probability": 0.5, "xtc_threshold": 0.2}),
        (
            {"dry_multiplier": 1, "dry_penalty_last_n": -1, "dry_allowed_length": 3},
            {"dry_multiplier": 1.0, "dry_range": None, "dry_allowed_length": 3},
        ),
        ({"dynatemp_range": 0.25, "temperature": 0.75}, {"temperature": 1.0, "dynatemp_low": 0.5, "dynatemp_high": 1}),
        ({"dynamic_temperature": False, "dynatemp_low": 1, "dynatemp_high": 1}, {"dynatemp_high": None}),
        ({"mirostat": 0, "mirostat_tau": 5}, {"mirostat_tau": None}),
        ({"mirostat_mode": 2, "mirostat_tau": 4}, {"mirostat_tau": 4.0}),
        ({"mirostat": 2}, {"mirostat_tau": 5.0}),
        (
            {"mirostat": 2, "top_k": 5, "repeat_penalty": 1.3, "samplers": ["top_k"], "temperature": 0.5},
            {"mirostat_tau": 5.0, "top_k": 0, "temperature": 0.5, "stages": None},
        ),
        ({"mirostat_tau": 5, "top_k": 5}, {"mirostat_tau": 5.0, "top_k": 5}),
        ({"n_predict": 7, "stopping_strings": ["a"]}, {"max_new_tokens": 7, "stop_strings": ["a"]}),
        ({"n_predict": -1}, {"max_new_tokens": 64}),
        ({"do_sample": False, "temperature": 0.7, "min_p": 0.1}, {"do_sample": False, "min_p": None}),
        ({"temperature": 0, "min_p": 0.1, "dry_multiplier": 0.5}, {"min_p": None, "dry_multiplier": 0.5}),
        ({"grammar": 'root ::= "yes" | "no"'}, {"grammar": {"gbnf": 'root ::= "yes" | "no"'}}),
        ({"json_schema": {"type": "object"}}, {"grammar": {"json_schema": {"type": "object"}}}),
        ({"guided_choice": ["a", "b"]}, {"grammar": {"choice": ["a", "b"]}}),
        ({"banned_phrases": ["never"]}, {"banned_phrases": ["never"]}),
        ({"tfs": 1, "skew": 0, "smoothing_factor": 0, "num_beams": 1, "cache_prompt": True}, {"top_k": 0}),
        ({"presence_penalty": 1, "repeat_last_n": 0}, {"presence_penalty": 0.0}),
        ({"dry_multiplier": 1, "dry_penalty_last_n": 0}, {"dry_multiplier": None}),
        ({"dry_multiplier": 1, "dry_penalty_last_n": 9}, {"dry_range": 9}),
        ({"dry_multiplier": 1, "dry_sequence_breakers": '["*", ":", "\\n", "\\""]'}, {"dry_multiplier": 1.0}),
        ({"xtc_probability": 0.5, "xtc_threshold": 0.6}, {"xtc_probability": None}),
        ({"logit_bias": [[5, 1], [6, False]]}, {"sequence_bias": [[[5], 1.0]], "suppress_tokens": [6]}),
        (
            {"reasoning_budget_tokens": 9, "reasoning_budget_message": "Enough."},
            {"thinking_budget": 9, "thinking_message": "Enough."},
        ),
        ({"thinking_token_budget": -1}, {"thinking_budget": None}),
        ({"structured_outputs": {"choice": ["a", "b"], "json": None}}, {"grammar": {"choice": ["a", "b"]}}),
        ({"structured_outputs": {"json": '{"type": "object"}'}}, {"grammar": {"json_schema": {"type": "object"}}}),
        (
            {"response_format": {"type": "json_schema", "schema": {"type": "array"}}},
            {"grammar": {"json_schema": {"type": "array"}}},
        ),
        # The usual order is no setting; what samplers leaves out is off, and temperature 0 without it draws.
        (
            {"samplers": ["penalties", "dry", "temperature", "top_k"], "top_k": 4, "min_p": 0.1},
            {"stages": None, "top_k": 4, "min_p": 0.0},
        ),
        (
            {"samplers": ["top_k", "temp"], "top_k": 4, "temperature": 0.5},
            {"stages": ["top_k", "temperature", "dynatemp_high"], "temperature": 0.5},
        ),
        (
            {"samplers": "pt", "temperature": 0.5, "top_p": 0.9, "top_k": 3},
            {"stages": ["top_p", "temperature", "dynatemp_high"], "top_p": 0.9, "top_k": 0},
        ),
        (
            {"samplers": [], "temperature": 0, "top_p": 0.9, "frequency_penalty": 1},
            {"do_sample": True, "temperature": 1.0, "top_p": 1.0, "frequency_penalty": None, "stages": None},
        ),
    ],
)
def test_settings_that_local_programs_send_are_translated(fields, settings):
    found = chat(**fields).settings
    assert {name: found.get(name) for name in settings} == settings


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tfs": 0.9}, "tfs"),
        ({"repeat_penalty": 1.2, "repeat_last_n": 64}, "repeat_last_n"),
        ({"repeat_penalty": 1.2, "repetition_penalty": 1.3}, "repetition_penalty"),
        ({"mirostat": 1}, "mirostat"),
        ({"mirostat": 2, "samplers": 7}, "samplers"),
        ({"min_p": 2}, "min_p"),
        ({"min_p": True}, "min_p"),
        ({"frequency_penalty": 2.5}, "frequency_penalty"),
        ({"samplers": ["top_k", "infill"]}, "samplers"),
        ({"samplers": ["top_k", "top_k"]}, "samplers"),
        ({"samplers": "kq"}, "samplers"),
        ({"samplers": ["top_k"], "stages": ["top_k", "temperature"]}, "samplers"),
        ({"frequency_penalty": 1, "repeat_last_n": 64}, "repeat_last_n"),
        ({"dry_multiplier": 1, "dry_sequence_breakers": ["#"]}, "dry_sequence_breakers"),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"grammar": "root ::= ("}, "grammar"),
        ({"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "grammar"),
        ({"num_beams": 4}, "num_beams"),
    ],
)
def test_settings_of_local_programs_without_a_counterpart_are_refused_by_name(fields, param):
    with pytest.raises(ApiError) as refused:
        chat(**fields)
    assert refused.value.param == param
    assert refused.value.message.endswith(".")


def test_samplers_before_penalties_act_after_grammars_and_bans():
    stages = chat(samplers=["top_k", "penalties"], top_k=4, presence_penalty=1).settings["stages"]
    assert isinstance(stages, list)
    order = stage_order(stages)
    wanted = ["suppress_tokens", "grammar", "top_k", "repetition_penalty", "frequency_penalty", "presence_penalty"]
    assert sorted(wanted, key=order.index) == wanted


def test_two_calls_with_seed_minus_one_have_different_seeds():
    assert chat(seed=-1).seed != chat(seed=-1).seed


def test_samplers_of_a_call_have_the_stages_of_an_imported_file():
    for name, sampler in SAMPLERS.items():
        for one in {name, *sampler.aliases} & llama_cpp.STAGES.keys():
            assert llama_cpp.STAGES[one] == (sampler.stages if name != "temperature" else ("temperature",))


def test_both_names_of_a_setting_with_one_value_are_accepted():
    assert chat(repeat_penalty=1.2, repetition_penalty=1.2).settings["repetition_penalty"] == 1.2


def test_thinking_of_an_earlier_answer_is_passed_on():
    earlier = {"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}
    call = chat(messages=[*HELLO, earlier, {"role": "user", "content": "Why?", "reasoning_content": "no"}])
    assert call.prompts[0][1:] == (earlier, {"role": "user", "content": "Why?"})


def test_reasoning_of_an_answer_that_was_cut_is_passed_on_without_content():
    for name in ("reasoning_content", "reasoning"):
        call = chat(messages=[*HELLO, {"role": "assistant", "content": None, name: "Hm"}])
        assert call.prompts[0][-1] == {"role": "assistant", "content": "", "reasoning_content": "Hm"}


def test_settings_of_the_template_are_part_of_the_request():
    (request,) = chat(chat_template_kwargs={"enable_thinking": False}, reasoning_effort="low").requests()
    assert request.template_settings == {"enable_thinking": False, "reasoning_effort": "low"}


QWEN = ("<think>", "</think>", "")


def _thinking_run(*pieces: str, opened: bool = True, ending: str = "eos", stop: str = "", special: bool = False):
    """A run of a model whose template opens the thinking."""

    def run(request: Request) -> Iterator[Event]:
        prompt = (PromptToken(1, "Why?"), *([PromptToken(2, "<think>")] if opened else []))
        yield RunStarted("greedy", "tiny", "cpu", "float32", "dynamic", 0, prompt, (), thinking=(QWEN,))
        for step, piece in enumerate(pieces):
            yield _token(step, piece, special=special and piece in QWEN)
        yield SequenceFinished(0, ending, stop_string=stop)
        yield Finished("completed", ((),), ("",), Metrics())

    return run


def _joined(chunks: list[dict[str, Any]], name: str) -> str:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return "".join(delta.get(name) or "" for delta in deltas)


THOUGHT = ("\n", "Two", " <", " three", ".", "\n", "</think>", "\n\n", "Yes", ".")


@pytest.mark.parametrize(
    ("pieces", "options", "thinking", "content", "tokens"),
    [
        (THOUGHT, {}, "Two < three.", "Yes.", 7),
        (("<think>", *THOUGHT), {"opened": False}, "Two < three.", "Yes.", 8),
        (("<think>", *THOUGHT), {"opened": False, "special": True}, "Two < three.", "Yes.", 8),
        (("Hm", "</thi", "nk>", "Yes"), {}, "Hm", "Yes", 3),
        (("Hm", " is it"), {"ending": "length"}, "Hm is it", "", 2),
        (("Yes", "."), {"opened": False}, "", "Yes.", 0),
        (("a", " </think>", " is", " a mark", "</think>", "Yes"), {}, "a </think> is a mark", "Yes", 5),
        (("A <b>", " and", " <think>", " in it"), {"opened": False}, "", "A <b> and <think> in it", 0),
        (("Hm", "</think>", "Yes", " ST", "OP"), {"ending": "stop_string", "stop": " STOP"}, "Hm", "Yes", 2),
    ],
)
def test_thinking_is_returned_beside_the_content_streamed_and_complete(pieces, options, thinking, content, tokens):
    events, stop = _thinking_run(*pieces, **options), options.get("stop")
    body = write_answer(chat(stop=stop, logprobs=True), events)
    (choice,) = body["choices"]
    assert choice["message"].get("reasoning_content", "") == thinking
    assert choice["message"]["content"] == content
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": tokens}
    for logprobs in (False, True):
        chunks = _streamed(chat(stop=stop, stream=True, logprobs=logprobs), events)
        assert _joined(chunks, "reasoning_content") == thinking
        assert _joined(chunks, "content") == content
    entries = [
        entry for chunk in chunks for one in chunk["choices"] for entry in (one["logprobs"] or {}).get("content", [])
    ]
    assert entries == choice["logprobs"]["content"], "each token is reported once"
    assert not any({"content", "reasoning_content"} <= one["delta"].keys() for c in chunks for one in c["choices"])


def test_an_end_of_thinking_inside_a_sentence_that_is_the_only_one_still_starts_the_content():
    events = _thinking_run("So", " </think>", " Yes", ".")
    assert write_answer(chat(), events)["choices"][0]["message"]["content"] == "Yes."
    assert _joined(_streamed(chat(stream=True), events), "content") == "Yes."


def test_reasoning_format_none_returns_the_text_as_it_was_written():
    events = _thinking_run("<think>", "Hm", "</think>", "Yes", opened=False, special=True)
    message = write_answer(chat(reasoning_format="none"), events)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "<think>Hm</think>Yes", "refusal": None}
    chunks = _streamed(chat(reasoning_format="none", stream=True), events)
    assert _joined(chunks, "content") == "<think>Hm</think>Yes"


def test_include_reasoning_false_leaves_the_thinking_out():
    events = _thinking_run(*THOUGHT)
    message = write_answer(chat(include_reasoning=False), events)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "Yes.", "refusal": None}
    assert _joined(_streamed(chat(include_reasoning=False, stream=True), events), "reasoning_content") == ""


def test_equal_choices_of_greedy_decoding_all_have_the_thinking():
    events = _thinking_run(*THOUGHT)
    body = write_answer(chat(n=2, temperature=0), events)
    assert [one["message"]["reasoning_content"] for one in body["choices"]] == ["Two < three."] * 2
    assert _joined(_streamed(chat(n=2, temperature=0, stream=True), events), "content") == "Yes.Yes."
