"""A real model behind the server's API, without a network: thinking, the variables of its template, and samplers."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event, RunStarted
from decodescope.core.request import Request
from decodescope.core.server import ServedModel, serve_command
from decodescope.core.server.openai_api import ApiResponse, parse_call, to_api_error
from tests.core import thinking_models
from tests.core.complete_answers import write_answer

HELLO = [{"role": "user", "content": "Hello"}]
SWITCHED = thinking_models.TEMPLATE.replace(
    "<bot><think>{% endif %}", "<bot><think>{% if enable_thinking is false %}</think>{% endif %}{% endif %}"
)
Run = Callable[[Request], Iterator[Event]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """A function that serves a model, without sending its runs to a window of this computer."""
    monkeypatch.setattr("decodescope.core.trace.LiveAddress.find", lambda: None)

    def serve(model: core.LoadedModel) -> Run:
        runner = serve_command.make_runner(model)
        return lambda request: runner(request, threading.Event())

    return serve


def call(**fields: object) -> Any:
    body = {"model": "tiny", "messages": HELLO, "max_tokens": 12, "seed": 3, **fields}
    return parse_call(body, ServedModel("tiny"), is_chat=True)


def with_template(template: str) -> core.LoadedModel:
    model = thinking_models.model()
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = template
    return core.wrap(model.model, tokenizer, name="switched")


def prompt_of(events: Iterator[Event]) -> str:
    return "".join(
        (token.piece or token.text) if token.special else token.text
        for event in events
        if isinstance(event, RunStarted)
        for token in event.prompt
    )


@pytest.mark.parametrize("are_tokens", [True, False])
def test_thinking_of_a_model_is_returned_beside_the_content(run: Callable[..., Run], are_tokens: bool) -> None:
    events = run(thinking_models.model(are_tokens=are_tokens))
    raw = write_answer(call(thinking_budget=4, reasoning_format="none"), events)["choices"][0]["message"]["content"]
    body = write_answer(call(thinking_budget=4), events)
    message, (thinking, content) = body["choices"][0]["message"], raw.split("</think>")
    assert thinking
    assert (message["reasoning_content"], message["content"]) == (thinking.strip(), content.lstrip())
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] >= 5
    answer, parts = ApiResponse(call(thinking_budget=4, stream=True)), {"content": "", "reasoning_content": ""}
    for request in answer.call.requests():
        answer.begin()
        for event in events(request):
            for chunk in answer.feed(event):
                for name, text in chunk["choices"][0]["delta"].items():
                    if name in parts:
                        parts[name] += text
    assert parts == {name: message[name] for name in parts}


def test_thinking_sent_back_goes_into_the_template(run: Callable[..., Run]) -> None:
    earlier = {"role": "assistant", "content": "4", "reasoning_content": "2+2"}
    (request,) = call(messages=[*HELLO, earlier, *HELLO]).requests()
    text = prompt_of(run(thinking_models.model())(request))
    assert text == "<user>Hello</s><bot><think>2+2</think>4</s><user>Hello</s><bot><think>"


@pytest.mark.parametrize("fields", [{"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}])
def test_thinking_is_switched_off_by_the_template(run: Callable[..., Run], fields: dict[str, object]) -> None:
    events = run(with_template(SWITCHED))
    assert prompt_of(events(call().requests()[0])).endswith("<bot><think>")
    (request,) = call(**fields).requests()
    assert prompt_of(events(request)).endswith("<bot><think></think>")
    message = write_answer(call(**fields), events)["choices"][0]["message"]
    assert "reasoning_content" not in message


@pytest.mark.parametrize(
    ("fields", "param", "remedy"),
    [
        ({"chat_template_kwargs": {"thinking": False}}, "chat_template_kwargs.thinking", "thinking_budget"),
        ({"reasoning_effort": "low"}, "reasoning_effort", "thinking_budget"),
        ({"reasoning_effort": "none"}, "reasoning_effort", "thinking_budget"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages", "Remove it."),
        ({"chat_template_kwargs": {"bos_token": "x"}}, "chat_template_kwargs.bos_token", "Remove it."),
    ],
)  # fmt: skip
def test_a_variable_that_the_template_does_not_read_is_refused_by_name(
    run: Callable[..., Run], fields: dict[str, object], param: str, remedy: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        write_answer(call(**fields), run(thinking_models.model()))
    error = to_api_error(refused.value)
    assert (error.status, error.param) == (400, param)
    assert remedy in error.message


def test_the_remedy_names_the_switches_that_the_template_reads(run: Callable[..., Run]) -> None:
    with pytest.raises(ParameterError, match="does not read reasoning_effort") as refused:
        write_answer(call(reasoning_effort="low"), run(with_template(SWITCHED)))
    assert refused.value.remedy == "Remove it. The template reads enable_thinking."


def test_a_model_without_thinking_accepts_that_it_is_off(run: Callable[..., Run]) -> None:
    model = thinking_models.model(are_tokens=False)
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = "{% for m in messages %}<user>{{ m.content }}{% endfor %}<bot>"
    events = run(core.wrap(model.model, tokenizer, name="plain"))
    plain = write_answer(call(), events)["choices"]
    for fields in ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}):
        assert write_answer(call(**fields), events)["choices"] == plain
    with pytest.raises(ParameterError):
        write_answer(call(chat_template_kwargs={"enable_thinking": True}), events)


def test_the_order_of_samplers_is_that_of_the_stages(run: Callable[..., Run]) -> None:
    events, settings = run(thinking_models.model()), {"temperature": 1.9, "top_p": 0.4, "max_tokens": 30}
    usual = write_answer(call(**settings), events)["choices"]
    assert write_answer(call(**settings, samplers=["temperature", "top_p"]), events)["choices"] == usual
    moved = write_answer(call(**settings, samplers=["top_p", "temperature"]), events)["choices"]
    assert moved == write_answer(call(**settings, stages=["top_p", "temperature"]), events)["choices"]
    assert moved != usual


@pytest.mark.slow
def test_the_openai_client_reads_thinking_streamed_and_complete() -> None:
    openai = pytest.importorskip("openai")
    pytest.importorskip("uvicorn")
    from decodescope.core.server import HttpServer

    model = thinking_models.model()
    server = HttpServer(ServedModel("tiny", model.context), serve_command.make_runner(model), key="k")
    server.start()
    try:
        client = openai.OpenAI(base_url=server.address, api_key="k", max_retries=0)
        options = {"model": "tiny", "messages": HELLO, "seed": 3, "max_tokens": 12}
        body = {"thinking_budget": 4}
        message = client.chat.completions.create(**options, extra_body=body).choices[0].message
        stream = client.chat.completions.create(**options, extra_body=body, stream=True)
        deltas = [choice.delta for chunk in stream for choice in chunk.choices]
        for name in ("content", "reasoning_content"):
            assert "".join(getattr(delta, name, None) or "" for delta in deltas) == getattr(message, name) != ""
        with pytest.raises(openai.BadRequestError, match="infill"):
            client.chat.completions.create(**options, extra_body={"samplers": ["infill"]})
        assert server.counts[:2] == (2, 1)
        assert "infill" in server.counts.last_refusal
    finally:
        server.stop()
