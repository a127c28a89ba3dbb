"""Prompt tokens as tokenized by engines on other machines, and every failure to report them."""

import threading

import pytest

from decodescope import core
from decodescope.core.errors import EngineBusyError
from decodescope.core.events import Notice, Prefilled, PromptToken, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import connect
from tests import fake_remote_engine
from tests.core.remote_requests import model_of
from tests.fake_remote_engine import FakeEngine
from tests.fake_tokenizer import START, cut, number, templated

GREEDY = " there was the dog."
PROMPT = "Once upon a wölf 🐺"
PIECES = ["Once", " upon", " a", " w", "⟨C3⟩", "⟨B6⟩", "lf", " ", "⟨F0⟩", "⟨9F⟩", "⟨90⟩", "⟨BA⟩"]


def asked(prompt: object = PROMPT, **more: object) -> core.Request:
    return core.Request(prompt, {"max_new_tokens": 5}, top_n=3, **more)  # type: ignore[arg-type]


def started(result: core.Result) -> RunStarted:
    first = result.events[0]
    assert isinstance(first, RunStarted)
    return first


def token_pieces(tokens: tuple[PromptToken, ...]) -> list[str]:
    return [one.piece or one.text for one in tokens]


@pytest.mark.parametrize(("kind", "written"), [("vllm", "bytes"), ("vllm", "pieces"), ("llama.cpp", "bytes")])
def test_prompt_is_tokenized_by_the_engine(kind: str, written: str) -> None:
    with fake_remote_engine.running(kind, tokenizer=written) as machine:
        result = core.run(model_of(machine), asked())
        prompt = started(result).prompt
        first = " Once" if written == "pieces" else "Once"  # it puts a space first, which the text has not
        assert token_pieces(prompt) == ["<s>", first, *PIECES[1:]]
        assert "".join(one.text for one in prompt) == f"<s>{PROMPT}"
        assert [one.text for one in prompt][-4:] == ["", "", "", "🐺"]
        assert [one.id for one in prompt] == [START, *map(number, cut(PROMPT))]
        assert result.texts == [GREEDY]
        assert len(machine.read) == 1  # not one for each token


def test_prompt_token_count_is_known_at_the_first_token() -> None:
    with fake_remote_engine.running(
        "llama.cpp"
    ) as machine:  # the engine reports its own count with the last message only
        events = core.run(model_of(machine), asked()).events
        assert [event.tokens for event in events if isinstance(event, Prefilled)] == [len(PIECES) + 1]


def test_alternatives_use_ids_known_from_the_prompt(machine: FakeEngine) -> None:
    result = core.run(model_of(machine), asked("It was the dog and an end"))
    others = {one.text: one.id for event in result.events if isinstance(event, TokenChosen)
              for one in event.alternatives}  # fmt: skip
    assert others[" an"] == number(b" an")
    assert others[" girl"] < 0  # the engine has not reported it


def test_beginning_is_tokenized_with_the_prompt(machine: FakeEngine) -> None:
    model = model_of(machine)
    begun = started(core.run(model, asked("Once upon", beginning=[" a", " time"])))
    assert (token_pieces(begun.prompt), token_pieces(begun.beginning)) == (["<s>", "Once", " upon"], [" a", " time"])
    inside = started(core.run(model, asked("Once up", beginning=["on a time"])))  # a token spans the border
    assert (token_pieces(inside.prompt), token_pieces(inside.beginning)) == (["Once up"], ["on a time"])
    assert all(one.id < 0 for one in inside.prompt)


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp"])
def test_chat_prompt_is_shown_with_its_template(kind: str) -> None:
    messages = [{"role": "user", "content": "Hello wölf"}]
    with fake_remote_engine.running(kind) as machine:
        prompt = started(core.run(model_of(machine), asked(messages))).prompt
        assert "".join(one.text for one in prompt) == f"<s>{templated(messages)}"


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp"])
def test_prompt_of_ids_is_decoded(kind: str) -> None:
    with fake_remote_engine.running(kind) as machine:
        prompt = started(core.run(model_of(machine), asked([7, 8]))).prompt
        assert [one.id for one in prompt] == [7, 8]
        assert "".join(one.text for one in prompt) == "word7 word8"
        assert [path for path, _body in machine.read] == ["/detokenize"]


def test_normalizing_tokenizer_yields_ids_without_token_texts() -> None:
    with fake_remote_engine.running(tokenizer="lower") as machine:
        prompt = started(core.run(model_of(machine), asked("Once Upon"))).prompt
        assert [one.id for one in prompt] == [START, *map(number, cut("Once Upon"))]
        assert [one.text for one in prompt] == ["", "", "Once Upon"]
        assert token_pieces(prompt) == ["<s>", "once", "ġupon"]


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp"])
@pytest.mark.parametrize("fault", ["none", "garbage", "broken", "cut"])
def test_failing_tokenizer_endpoint_keeps_the_run(kind: str, fault: str) -> None:
    with fake_remote_engine.running(kind, tokenizer=fault) as machine:
        model = model_of(machine)
        for prompt in (PROMPT, [7, 8], [{"role": "user", "content": "Hello"}]):
            result = core.run(model, asked(prompt))
            assert result.texts == [GREEDY]
            (only,) = started(result).prompt
            assert only.id < 0
        assert len(machine.read) == 1  # they are not requested again


def test_slow_tokenizer_endpoint_is_skipped_and_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_remote_engine.running() as machine:
        monkeypatch.setattr(fake_remote_engine._EngineHandler, "_read", lambda self, _body: machine.left.wait(20))
        patient = connect(machine.name(), timeouts=Timeouts(first_byte=0.2))
        assert core.run(patient, asked()).texts == [GREEDY]
        events = core.stream(model_of(machine), asked(), cancel := _stopping_soon())
        assert [event.reason for event in events if isinstance(event, SequenceFinished)] == ["stopped"]
        assert cancel.is_set()
        machine.left.set()


def test_server_without_logits_is_retried_without_probabilities() -> None:
    with fake_remote_engine.running("llama-cpp-python", without_logits=True) as machine:
        model = model_of(machine)
        first = core.run(model, asked())
        assert first.texts == [GREEDY]
        assert ["logprobs" in body for body in machine.asked] == [True, False]
        reported = [event.message for event in first.events if isinstance(event, Notice)]
        assert [("reports only text" in one, "--logits_all true" in one) for one in reported] == [
            (True, False),
            (False, True),
        ]
        core.run(model, asked())
        assert len(machine.asked) == 3  # they are not requested again
        machine.without_logits = False
        assert core.run(model_of(machine), asked()).texts == [GREEDY]  # after a restart it reports them
        assert "logprobs" in machine.sent


def test_failing_server_is_not_marked_as_without_probabilities() -> None:
    with fake_remote_engine.running("llama-cpp-python") as machine:
        machine.refusals = [(500, {}, "no memory")] * 4  # once with probabilities, and every try without
        model = model_of(machine)
        with pytest.raises(EngineBusyError, match="no memory"):
            core.run(model, asked())
        assert machine.refusals == []
        core.run(model, asked())
        assert "logprobs" in machine.sent


def _stopping_soon() -> threading.Event:
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    return cancel
