"""Scoring a given text, held against one plain pass of the same module."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding import text_scoring
from decodescope.core.errors import ComparisonError, EmptyPromptError, ParameterError, PromptError, TextTooLongError
from decodescope.core.events import Event, Finished, Prefilled, RunStarted, SequenceFinished, TokenChosen, TokenCompared
from tests.core import tiny, zoo
from tests.long import every

KINDS = ("gpt2", "llama", "gemma2", "mamba", "t5", "bart")


def model_of(kind: str) -> core.LoadedModel:
    """Mamba's recurrence makes rounding grow with the weights: its tiny one is kept tame."""
    return tiny.make(kind, scale=2.0) if kind == "mamba" else tiny.shared(kind)


def plain_logits(model: core.LoadedModel, ids: list[int], source: list[int]) -> torch.Tensor:
    """Return logits [T, V] after every token of a text, from one call of the module."""
    row: dict[str, Any] = {"input_ids": torch.tensor([ids])}
    if model.is_encoder_decoder:
        row = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([ids])}
    with torch.inference_mode():
        return model.model(**row, use_cache=False).logits[0].float()


T = TypeVar("T", bound=Event)


def of_kind(kind: type[T], events: Iterable[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_those_of_one_plain_pass(kind: str) -> None:
    model, source, text = model_of(kind), tiny.prompt(9), tiny.prompt(25, seed=1)
    ids = [3, *text] if model.is_encoder_decoder else text
    reported = core.score(model, text, 3, given=source if model.is_encoder_decoder else None)
    logs = plain_logits(model, ids, source).log_softmax(-1)
    assert [event.id for event in reported] == ids[1:]
    assert [event.step for event in reported] == list(range(len(ids) - 1))
    for event, row in zip(reported, logs, strict=False):
        own = float(row[event.id])
        assert event.raw_log_probability == pytest.approx(own, abs=1e-5)
        assert event.log_probability == event.raw_log_probability
        assert event.probability == pytest.approx(math.exp(own), rel=1e-4)
        assert event.rank == int((row > row[event.id]).sum()) + 1
        assert event.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-4)
        assert [item.id for item in event.alternatives[:3]] == row.topk(3).indices.tolist()
        assert event.method == "scored"


@pytest.mark.parametrize("kind", KINDS)
def test_a_greedy_text_scored_again_is_the_first_choice_throughout(kind: str) -> None:
    model, prompt = model_of(kind), tiny.prompt()
    result = core.run(model, core.Request(prompt, GenerationConfig(max_new_tokens=30, eos_token_id=None)))
    written, new = of_kind(TokenChosen, result.events), result.sequences[0]
    reported = core.score(model, new, given=prompt)
    assert [event.id for event in reported] == new
    assert {event.rank for event in reported} == {1}
    for once, again in zip(written, reported, strict=True):
        assert again.raw_log_probability == pytest.approx(once.raw_log_probability, abs=1e-5)
        assert again.text == once.text
    if not model.is_encoder_decoder:
        whole = core.score(model, prompt + new)
        assert len(whole) == len(prompt) + len(new) - 1
        assert [event.id for event in whole if event.rank > 1] == [e.id for e in whole[: len(prompt)] if e.rank > 1]


@pytest.mark.parametrize(
    "kind", every(3, ["openai-gpt", "xlnet", "xlm", "recurrent_gemma", "gpt_neo", "prophetnet", "mbart"])
)
def test_unusual_architectures_score_their_text_consistently(kind: str) -> None:
    model, prompt = zoo.make(kind), zoo.prompt(12)
    config = GenerationConfig(max_new_tokens=8, min_new_tokens=8, num_beams=1, do_sample=False)
    written = of_kind(TokenChosen, core.run(model, core.Request(prompt, config, "greedy")).events)
    reported = core.score(model, [event.id for event in written], given=prompt)
    for once, again in zip(written, reported, strict=True):
        assert again.raw_log_probability == pytest.approx(once.raw_log_probability, abs=1e-3)
        assert again.rank == once.rank


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", zoo.names())
def test_all_architectures_score_their_text_consistently(kind: str) -> None:
    try:
        zoo.make(kind)
        tiny.reference(zoo.make(kind), zoo.prompt(12), GenerationConfig(max_new_tokens=3, num_beams=1))
        config = GenerationConfig(max_new_tokens=3, num_beams=1)
        core.run(zoo.make(kind), core.Request(zoo.prompt(12), config, "greedy"))
    except Exception as error:
        pytest.skip(f"no small one, or `generate` itself fails: {type(error).__name__}")
    test_unusual_architectures_score_their_text_consistently(kind)


def test_four_thousand_tokens_take_one_pass() -> None:
    model = tiny.make("llama", max_position_embeddings=4096)
    events = list(core.score_stream(model, tiny.prompt(4000)))
    assert len(of_kind(TokenChosen, events)) == 3999
    assert of_kind(Finished, events)[0].metrics.target_passes == 1
    assert of_kind(Prefilled, events)[0].tokens == 3999


@pytest.mark.parametrize(("kind", "passes"), [("llama", 4), ("t5", 4), ("gemma3", 4), ("mamba", 1), ("openai-gpt", 1)])
def test_large_vocabularies_are_read_in_pieces(kind: str, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.make(kind) if kind == "openai-gpt" else model_of(kind)
    text, given = tiny.prompt(31), [5, 6] if model.is_encoder_decoder else None
    at_once = core.score(model, text, 3, given=given)
    monkeypatch.setattr(text_scoring, "MAX_PASS_LOGITS", 8 * model.vocabulary)
    monkeypatch.setattr(text_scoring, "MAX_STATS_LOGITS", 5 * model.vocabulary)
    events = list(core.score_stream(model, text, 3, given=given))
    assert of_kind(Finished, events)[0].metrics.target_passes == passes
    for one, other in zip(at_once, of_kind(TokenChosen, events), strict=True):
        assert (one.id, one.rank) == (other.id, other.rank)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)


def test_score_stream_has_the_events_of_a_run() -> None:
    model = core.load("storyteller")
    events = list(core.score_stream(model, "Once upon a time, there was a 🐢", 2))
    started, finished = events[0], events[-1]
    assert isinstance(started, RunStarted)
    assert started.strategy == "score"
    assert [token.id for token in started.prompt] == [1]
    assert isinstance(events[1], Prefilled)
    assert isinstance(events[-2], SequenceFinished)
    assert events[-2].reason == "given"
    assert isinstance(finished, Finished)
    assert finished.reason == "completed"
    assert finished.texts == ("Once upon a time, there was a 🐢",)
    assert "".join(event.text for event in of_kind(TokenChosen, events)) == finished.texts[0]


def test_given_context_is_not_scored() -> None:
    model = core.load("storyteller")
    whole = core.score(model, "Once upon a time, there was a fox.")
    reported = core.score(model, ", there was a fox.", given="Once upon a time")
    assert [event.piece for event in reported] == [event.piece for event in whole[-len(reported) :]]
    for one, other in zip(reported, whole[-len(reported) :], strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)


def test_scoring_an_encoder_decoder_without_a_source() -> None:
    model = core.load("summarizer")
    assert model.is_encoder_decoder
    start = model.generation_config.decoder_start_token_id
    ids = core.encode(model, "A girl found a key.")
    assert [event.id for event in core.score(model, "A girl found a key.")] == ids
    assert [event.id for event in core.score(model, [start, *ids])] == ids
    source = "Once upon a time, there was a girl named Mia. She found a key in a box. She was happy."
    new = core.run(model, core.Request(source, GenerationConfig(max_new_tokens=12, num_beams=1))).sequences[0]
    answered, alone = (sum(e.log_probability for e in core.score(model, new, given=one)) for one in (source, None))
    assert answered > alone


def test_invalid_scoring_arguments_raise_an_error() -> None:
    model = tiny.shared("llama")
    with pytest.raises(TextTooLongError, match="258 tokens, more than the model's context of 257"):
        core.score(model, tiny.prompt(258))
    assert len(core.score(model, tiny.prompt(257))) == 256, "the last token of a full context need not be read"
    assert core.score(model, [7]) == ()
    with pytest.raises(ParameterError):
        core.score(model, [7, tiny.VOCABULARY])
    with pytest.raises(ParameterError):
        core.score(model, [7, 8], top_n=-1)
    with pytest.raises(PromptError):
        core.score(model, [7, 8], given=[5, None])
    with pytest.raises(EmptyPromptError):
        core.score(tiny.shared("t5"), [])


def test_scoring_without_alternatives_and_cancelled() -> None:
    model = tiny.shared("gpt2")
    assert all(event.alternatives == () and event.rank for event in core.score(model, tiny.prompt(), 0))
    cancel = threading.Event()
    cancel.set()
    events = list(core.score_stream(model, tiny.prompt(), cancel=cancel))
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "stopped"
    assert not of_kind(TokenChosen, events)


@pytest.mark.parametrize("kind", ["llama", "t5", "mamba"])
def test_two_models_on_one_text(kind: str) -> None:
    first, second = model_of(kind), tiny.make(kind, seed=5, scale=2.0)
    source, text = tiny.prompt(9), tiny.prompt(20, seed=2)
    given = source if first.is_encoder_decoder else None
    ids = [3, *text] if first.is_encoder_decoder else text
    events = list(core.score_stream(first, text, 3, given=given, second=second))
    assert isinstance(events[0], RunStarted)
    assert events[0].second == second.name
    reported = of_kind(TokenCompared, events)
    alone = core.score(second, text, 3, given=given)
    result, reference = (plain_logits(one, ids, source).log_softmax(-1) for one in (first, second))
    assert [(event.step, event.id) for event in reported] == [(event.step, event.id) for event in alone]
    for event, own, p, q in zip(reported, alone, result, reference, strict=False):
        assert event.log_probability == pytest.approx(own.log_probability, abs=1e-5)
        assert (event.rank, event.alternatives[0].id) == (own.rank, own.alternatives[0].id)
        assert event.divergence == pytest.approx(float((p.exp() * (p - q)).sum()) / math.log(2), rel=1e-3, abs=1e-5)
    places = [events.index(event) for event in reported]
    assert all(isinstance(events[place - 1], TokenChosen) for place in places)


def test_a_model_does_not_differ_from_itself() -> None:
    events = core.score_stream(tiny.shared("gpt2"), tiny.prompt(), second=tiny.shared("gpt2"))
    assert max(event.divergence for event in of_kind(TokenCompared, events)) < 1e-6


def test_models_with_other_tokens_are_not_compared() -> None:
    storyteller = core.load("storyteller")
    with pytest.raises(ComparisonError, match="different tokenizer"):
        list(core.score_stream(storyteller, "Hello there", second=tiny.shared("llama")))
    with pytest.raises(ComparisonError, match="is a decoder-only model"):
        list(core.score_stream(tiny.shared("llama"), [5, 6], second=tiny.shared("t5")))
