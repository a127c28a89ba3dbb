"""SGLang's native endpoint: the additional data in each form, and the fallback to the compatible endpoint."""

import math

import pytest

from decodescope import core
from decodescope.core.errors import EngineBusyError, EngineCutError, EngineError, EngineReplyError
from decodescope.core.events import Prefilled, SequenceFinished
from decodescope.core.remote.engines.sglang import GenerateResponse
from tests import fake_remote_engine
from tests.core.remote_requests import chosen_tokens, model_of

SAMPLED = " there was a fox."


def make_request(prompt: object = "Once upon a time", **settings: object) -> core.Request:
    given = {"max_new_tokens": 5, "do_sample": True, "top_k": 0, **settings}
    return core.Request(prompt, given, top_n=3, seed=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["whole", "pieces", "both"])
def test_native_endpoint_reports_ids_alternatives_and_metrics(how: str) -> None:
    with fake_remote_engine.running("sglang", own_face=how) as machine:
        result = core.run(model_of(machine), make_request())
        assert machine.paths[-1] == "/generate"
        assert result.texts == [SAMPLED]
        written = chosen_tokens(result.events)
        assert [event.id for event in written] == [100, 101, 102, 103, 104]
        assert [event.text for event in written] == [" there", " was", " a", " fox", "."]
        third, fourth = written[2:4]
        assert (third.rank, third.raw_probability) == (2, pytest.approx(0.3))
        assert [(one.text, one.id) for one in third.alternatives] == [(" the", 200), (" a", 102), (" an", 202)]
        assert (fourth.rank, fourth.raw_probability) == (0, pytest.approx(0.02))
        assert [(event.tokens, event.reused) for event in result.events if isinstance(event, Prefilled)] == [(7, 3)]
        metrics = result.metrics
        assert (metrics.prompt_tokens, metrics.new_tokens, metrics.acceptance_rate) == (7, 5, 0.75)
        assert (metrics.target_passes, metrics.tokens_per_target_pass) == (2, 2.5)


def test_native_endpoint_receives_the_documented_request() -> None:
    with fake_remote_engine.running("sglang") as machine:
        model = model_of(machine)
        result = core.run(model, make_request(stop_strings=["."], min_new_tokens=2))
        assert machine.sent == {
            "text": "Once upon a time", "stream": True, "return_logprob": True, "top_logprobs_num": 3,
            "logprob_start_len": -1, "return_text_in_logprobs": True,
            "sampling_params": {
                "max_new_tokens": 5, "min_new_tokens": 2, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0,
                "repetition_penalty": 1.0, "stop": ["."], "sampling_seed": 7,
            },
        }  # fmt: skip
        assert [event.stop_string for event in result.events if isinstance(event, SequenceFinished)] == ["."]
        core.run(model, make_request([7, 8], do_sample=False))
        assert machine.sent["input_ids"] == [7, 8]
        assert "sampling_seed" not in machine.sent["sampling_params"]
        core.run(model, make_request([{"role": "user", "content": "Hello"}]))
        assert machine.paths[-1] == "/v1/chat/completions"  # the template of a chat is on that face alone


def test_several_sequences_are_kept_separate() -> None:
    with fake_remote_engine.running("sglang") as machine:
        result = core.run(model_of(machine), make_request(num_return_sequences=2, max_new_tokens=3))
        assert result.texts == [" there was a"] * 2
        assert [event.reason for event in result.events if isinstance(event, SequenceFinished)] == ["length"] * 2
        assert (result.metrics.new_tokens, result.metrics.target_passes) == (6, 4)


@pytest.mark.parametrize("how", ["none", "garbage", "fault", "cut"])
def test_missing_native_endpoint_falls_back_to_the_compatible_one(how: str) -> None:
    with fake_remote_engine.running("sglang", own_face=how) as machine:
        model = model_of(machine)
        for _ in range(2):
            result = core.run(model, make_request())
            assert result.texts == [SAMPLED]
            assert math.isclose(chosen_tokens(result.events)[2].raw_probability, 0.3)
        posts = [path for path in machine.paths if path != "/v1/models"]
        assert posts == ["/generate", "/v1/completions", "/v1/completions"]  # once, and never again


def test_refusal_by_both_endpoints_keeps_the_native_one_in_use() -> None:
    with fake_remote_engine.running("sglang") as machine:
        machine.refusals = [(400, {}, "too long")] * 2
        model = model_of(machine)
        with pytest.raises(EngineError, match="too long"):
            core.run(model, make_request())
        core.run(model, make_request())
        assert machine.paths[-1] == "/generate"


def test_busy_native_endpoint_is_retried_there() -> None:
    with fake_remote_engine.running("sglang") as machine:
        machine.refusals = [(503, {}, "loading")]
        assert core.run(model_of(machine), make_request()).texts == [SAMPLED]
        assert machine.paths[-1] == "/generate"
        machine.refusals = [(503, {}, "loading")] * 3
        with pytest.raises(EngineBusyError, match="loading"):
            core.run(model_of(machine), make_request())


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ({"dies_after": 3}, EngineCutError, "was lost during the text"),
        ({"fails_after": 3}, EngineCutError, "the worker ran out of memory"),
        ({"garbage_after": 3}, EngineReplyError, "is not a valid response"),
    ],
)
def test_failure_during_a_text_does_not_switch_the_endpoint(
    fault: dict[str, int], error: type[EngineError], words: str
) -> None:
    with fake_remote_engine.running("sglang", **fault) as machine:
        received: list[core.events.Event] = []
        with pytest.raises(error, match=words):
            all(received.append(event) is None for event in core.stream(model_of(machine), make_request()))
        assert "".join(event.text for event in chosen_tokens(received)) == " there was a"
        assert machine.paths[-1] == "/generate"


def meta(total: int, **more: object) -> dict[str, object]:
    return {"completion_tokens": total, "finish_reason": None, **more}


def test_aborted_text_reports_the_reason() -> None:
    reason = {"type": "abort", "message": "KV cache is full", "status_code": 500}
    with pytest.raises(EngineCutError, match="KV cache is full"):
        GenerateResponse("here").delta({"text": "", "meta_info": meta(0, finish_reason=reason)})


def test_cumulative_and_partial_texts_yield_the_same_deltas() -> None:
    lines = [[-0.1, 5, "a"]], [[-0.1, 5, "a"], [-0.2, 5, "a"]]
    whole, pieces = GenerateResponse("here"), GenerateResponse("here")
    for own, later, reported in ((whole, "aa", lines[1]), (pieces, "a", lines[1][1:])):
        assert own.delta({"text": "a", "meta_info": meta(1, output_token_logprobs=lines[0])}).text == "a"
        part = own.delta({"text": later, "meta_info": meta(2, output_token_logprobs=reported)})
        assert (part.text, len(part.tokens)) == ("a", 1)
    ended = whole.delta({"text": "a", "meta_info": meta(2, output_token_logprobs=lines[1])})
    assert (ended.text, ended.tokens) == ("", ())  # a stop text was cut off, and nothing is new


def test_tokens_without_probabilities_or_names() -> None:
    own = GenerateResponse("here")
    part = own.delta({"text": " a", "output_ids": [5], "meta_info": meta(1)})
    assert [(one.piece, one.id) for one in part.tokens] == [(" a", 5)]
    half = own.delta({"text": " a", "output_ids": [5, 6], "meta_info": meta(2)})
    assert [(one.piece, one.id) for one in half.tokens] == [("⟨6⟩", 6)]
    named = GenerateResponse("here").delta(
        {"text": " a", "meta_info": meta(1, output_token_logprobs=[[-0.1, 5, None]])}
    )
    assert [(one.piece, one.id) for one in named.tokens] == [("⟨5⟩", 5)]
