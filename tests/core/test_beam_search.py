"""Beam search: tokens and scores of transformers' generate; every text there is, on a vocabulary of six."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import NumericError, ParameterError
from decodescope.core.events import BeamsRanked, BeamStep, CacheMeasured, Finished, RunStarted, SequenceFinished
from tests.core import tiny
from tests.core.beam_reference import exhaustive, run
from tests.core.test_against_generate import PROCESSORS
from tests.long import every

END_TOKENS = [2, 11, 17, 23, 32, 44]
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stops early": {"early_stopping": True, "eos_token_id": END_TOKENS},
    "never early": {"early_stopping": "never", "eos_token_id": END_TOKENS},
    "short texts": {"length_penalty": -1.5, "eos_token_id": END_TOKENS},
    "no length": {"length_penalty": 0.0, "eos_token_id": END_TOKENS, "early_stopping": "never"},
    "long texts": {"length_penalty": 2.5, "eos_token_id": END_TOKENS},
    "at least": {"min_new_tokens": 9, "eos_token_id": END_TOKENS},
    "two beams": {"num_beams": 2, "num_return_sequences": 1, "eos_token_id": END_TOKENS},
    "one token": {"max_new_tokens": 1},
}


def generate(model: core.LoadedModel, ids: list[int], **settings: Any) -> tuple[list[list[int]], list[float]]:
    """New tokens and scores of transformers' own beam search."""
    config = GenerationConfig(return_dict_in_generate=True, output_scores=True, **settings)
    tensor = torch.tensor([ids])
    out = model.model.generate(tensor, generation_config=config, attention_mask=torch.ones_like(tensor))
    start = 1 if model.is_encoder_decoder else len(ids)
    return out.sequences[:, start:].tolist(), out.sequences_scores.tolist()


def assert_same(model: core.LoadedModel, ids: list[int], **settings: Any) -> None:
    settings = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 14, **settings}
    texts, scores = generate(model, ids, **settings)
    found = run(model, ids, **settings)
    assert found.scores == pytest.approx(scores, rel=1e-4, abs=1e-4)
    for result, reference in zip(found.sequences, texts, strict=True):
        assert result == reference[: len(result)]
        assert len(set(reference[len(result) :])) <= 1  # padding


@pytest.mark.every(3)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", every(2, tiny.ALL))
def test_beam_search_equals_generate(kind: str, name: str) -> None:
    assert_same(tiny.make(kind, seed=1, scale=3.0), tiny.prompt(19), **SETTINGS[name])


@pytest.mark.every(2)
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", every(2, ["t5", "gpt2"]))
def test_processors_in_beam_search_equal_generate(kind: str, processor: str) -> None:
    assert_same(tiny.make(kind, seed=2, scale=3.0), tiny.prompt(), **PROCESSORS[processor])


def test_bundled_models_equal_generate() -> None:
    """Real texts, and a stop string."""
    story = core.load("storyteller", device="cpu")
    ids = story.tokenizer("Once upon a time, there was a")["input_ids"]
    assert_same(story, ids, num_beams=5, max_new_tokens=25)
    settings = {"num_beams": 3, "max_new_tokens": 30, "stop_strings": [" was", "."]}
    config = GenerationConfig(**settings)
    tensor = torch.tensor([ids])
    expected = story.model.generate(
        tensor, generation_config=config, tokenizer=story.tokenizer, attention_mask=torch.ones_like(tensor)
    )[0, len(ids) :].tolist()
    found = run(story, ids, **settings)
    assert found.sequences[0] == expected[: len(found.sequences[0])]
    ends = [event for event in found.events if isinstance(event, SequenceFinished)]
    assert [end.reason for end in ends] == ["stop_string"]
    assert found.texts[0] == story.tokenizer.decode([*ids, *found.sequences[0]])[len(story.tokenizer.decode(ids)) :]


@pytest.mark.parametrize("penalty", [1.0, 0.0, -1.0, 2.0])
@pytest.mark.parametrize("kind", ["llama", "qwen3", "mistral"])
def test_search_with_enough_beams_is_exhaustive(kind: str, penalty: float) -> None:
    model, ids = tiny.make(kind, scale=2.0, vocab_size=6), [3, 4, 5, 4]
    expected = exhaustive(model, ids, 4, 2, penalty)
    found = run(
        model, ids, max_new_tokens=4, num_beams=6**4, num_return_sequences=len(expected), length_penalty=penalty
    )
    assert len(found.sequences) == len(expected) == 1 + 5 + 25 + 125 * 6
    assert found.scores == pytest.approx([score for _, score in expected], rel=1e-4, abs=1e-4)
    assert {tuple(text) for text in found.sequences} == {text for text, _ in expected}
    assert tuple(found.sequences[0]) == expected[0][0]


def test_more_beams_find_likelier_texts() -> None:
    model, ids = tiny.make("llama", scale=2.0), tiny.prompt()
    scores = [run(model, ids, num_beams=n, eos_token_id=60, length_penalty=0.0).scores for n in (2, 8, 64)]
    assert scores[0] < scores[1] <= scores[2]  # type: ignore[operator]


def test_beam_steps_form_a_consistent_tree() -> None:
    """Numbers, parents, scores and fates of a run fit together."""
    found = run(tiny.make("llama", scale=3.0), tiny.prompt(), num_beams=3, eos_token_id=END_TOKENS, max_new_tokens=10)
    steps = [event for event in found.events if isinstance(event, BeamStep)]
    scores = {0: 0.0}
    alive = {0}
    for number, step in enumerate(steps):
        assert step.step == number
        assert len(step.candidates) == 7 * 3
        assert {item.parent for item in step.candidates} <= alive
        for item in step.candidates:
            assert item.node not in scores
            assert item.score == pytest.approx(scores[item.parent] + item.log_probability, abs=1e-4)
            assert item.normalized == pytest.approx(item.score / (number + 1), abs=1e-4)
            assert 0 <= item.probability <= 1
        scores |= {item.node: item.score for item in step.candidates}
        ranked = [item.score for item in step.candidates]
        assert ranked == sorted(ranked, reverse=True)
        alive = {item.node for item in step.candidates if item.fate == "kept"}
        assert all(item.ended for item in step.candidates if item.fate == "finished")
        assert step.best in scores
        assert len(alive) <= 3
    assert not alive


def test_ranking_reports_scores_and_length_penalty() -> None:
    found = run(tiny.shared("llama"), tiny.prompt(), num_beams=3, num_return_sequences=2, length_penalty=1.5)
    ranked = next(event for event in found.events if isinstance(event, BeamsRanked))
    best = ranked.hypotheses[0]
    assert best.score == pytest.approx(best.log_probability / best.length**1.5, rel=1e-5)
    assert list(best.ids) == found.sequences[0]
    assert found.scores == [item.score for item in ranked.hypotheses[:2]]
    assert all(first.score >= second.score for first, second in pairwise(ranked.hypotheses))
    assert (ranked.length_penalty, ranked.diversity_penalty) == (1.5, 0.0)
    started, finished = found.events[0], found.events[-1]
    assert isinstance(started, RunStarted)
    assert isinstance(finished, Finished)
    assert started.sequences == 2
    assert finished.order == (0, 1)
    assert found.metrics.new_tokens == best.length


def test_texts_of_the_tree_add_up() -> None:
    """Every node's text is what its token adds: paths spell what the tokenizer decodes, accents and all."""
    story = core.load("storyteller", device="cpu")
    prompt = story.tokenizer("The café’s old piano")["input_ids"]
    found = run(story, prompt, num_beams=4, num_return_sequences=4, max_new_tokens=24)
    nodes = {item.node: item for event in found.events if isinstance(event, BeamStep) for item in event.candidates}
    ranked = next(event for event in found.events if isinstance(event, BeamsRanked))
    for hypothesis, text in zip(ranked.hypotheses, found.texts, strict=True):
        path, node = [], hypothesis.node
        while node:
            path.append(nodes[node].text)
            node = nodes[node].parent
        whole = story.tokenizer.decode([*prompt, *hypothesis.ids], skip_special_tokens=True)
        assert "".join(reversed(path)) == text
        assert story.tokenizer.decode(prompt, skip_special_tokens=True) + text == whole


def test_default_is_four_beams() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    assert run(model, ids, "beam_search").scores == run(model, ids, num_beams=4).scores


def test_cancel_during_a_search_keeps_the_best_running_texts() -> None:
    model, cancel, seen = tiny.shared("llama"), threading.Event(), 0
    config = GenerationConfig(max_new_tokens=50, num_beams=4, num_return_sequences=2, eos_token_id=60)
    events = []
    for event in core.stream(model, core.Request(tiny.prompt(), config), cancel):
        events.append(event)
        seen += isinstance(event, BeamStep)
        if seen == 5:
            cancel.set()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason == "stopped"
    assert [len(ids) for ids in last.sequences] == [5, 5]
    fifth = [event for event in events if isinstance(event, BeamStep)][4]
    assert last.scores is not None
    assert last.scores[0] == max(item.normalized for item in fifth.candidates if item.fate == "kept")
    assert [event.reason for event in events if isinstance(event, SequenceFinished)] == ["stopped", "stopped"]


def test_a_time_limit_ends_all_beams_at_one_step() -> None:
    found = run(tiny.shared("llama"), tiny.prompt(), num_beams=3, max_time=1e-9, num_return_sequences=3)
    assert [len(text) for text in found.sequences] == [1, 1, 1]
    assert {event.reason for event in found.events if isinstance(event, SequenceFinished)} == {"time"}


def test_more_texts_than_beams_are_refused() -> None:
    config = GenerationConfig(num_beams=3)
    config.num_return_sequences = 5  # the constructor would refuse it; a file need not
    with pytest.raises(ParameterError, match="3 beams cannot return 5 sequences"):
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config))


def test_search_with_all_tokens_suppressed_raises_an_error() -> None:
    with pytest.raises(ParameterError, match="No token is left to choose"):
        run(tiny.shared("llama"), tiny.prompt(), num_beams=2, suppress_tokens=list(range(tiny.VOCABULARY)))


def test_search_with_nan_logits_raises_numeric_error() -> None:
    model = tiny.make("llama")
    with torch.no_grad():
        model.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(NumericError, match="NaN"):
        run(model, tiny.prompt(), num_beams=2)


def test_guidance_scores_belong_to_their_beam() -> None:
    """Scores of a guided search are those of its texts, read one by one with the same guidance."""
    model, ids, scale = tiny.make("llama", scale=3.0), tiny.prompt(), 1.7
    found = run(
        model, ids, num_beams=4, num_return_sequences=4, guidance_scale=scale, max_new_tokens=8, eos_token_id=60
    )
    for text, score in zip(found.sequences, found.scores or [], strict=True):
        with torch.inference_mode():
            guided = torch.log_softmax(model.model(torch.tensor([[*ids, *text]])).logits[0, len(ids) - 1 :], -1)
            free = torch.log_softmax(model.model(torch.tensor([[ids[-1], *text]])).logits[0], -1)
        mixed = scale * (guided - free) + free
        total = sum(mixed[place, token].item() for place, token in enumerate(text))
        assert score == pytest.approx(total / len(text), rel=1e-3, abs=1e-3)


def test_streamers_get_the_best_text() -> None:
    class ChunkStreamer:
        def __init__(self) -> None:
            self.chunks: list[list[int]] = []
            self.ended = False

        def put(self, value: torch.Tensor) -> None:
            self.chunks.append(value.flatten().tolist())

        def end(self) -> None:
            self.ended = True

    collector, ids = ChunkStreamer(), tiny.prompt()
    config = GenerationConfig(num_beams=3, max_new_tokens=6)
    found = core.run(tiny.shared("llama"), core.Request(ids, config), streamer=collector)
    assert collector.ended
    assert [token for chunk in collector.chunks for token in chunk] == ids + found.sequences[0]


def test_beam_steps_without_tracing_contain_survivors_only() -> None:
    config = GenerationConfig(num_beams=3, max_new_tokens=6, eos_token_id=60)
    found = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config, top_n=0))
    steps = [event for event in found.events if isinstance(event, BeamStep)]
    assert all(item.fate != "pruned" for step in steps for item in step.candidates)
    assert all(len(step.candidates) == 3 for step in steps)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"no_repeat_ngram_size": 2, "repetition_penalty": 1.4},
        {"do_sample": True, "temperature": 1.8, "top_k": 9},
        {"num_beam_groups": 2, "diversity_penalty": 1.0},
        {"force_words_ids": [[7, 8]]},
    ],
    ids=["plain", "penalties", "sampling", "diverse", "constrained"],
)
def test_candidates_report_their_raw_rank_and_probability(settings: dict[str, Any]) -> None:
    model, prompt = tiny.make("gpt2", seed=3, scale=3.0), tiny.prompt(11)
    steps = [e for e in run(model, prompt, num_beams=4, max_new_tokens=6, **settings).events if isinstance(e, BeamStep)]
    texts: dict[int, list[int]] = {0: prompt}
    for step in steps:
        for item in step.candidates:
            before = texts[item.parent]
            texts[item.node] = [*before, item.id]
            with torch.no_grad():
                own = torch.softmax(model.model(torch.tensor([before])).logits[0, -1].double(), -1)
            assert item.raw_probability == pytest.approx(float(own[item.id]), rel=1e-3)
            assert item.raw_log_probability == pytest.approx(float(own[item.id].log()), abs=1e-3)
            assert item.raw_rank == 1 + sum(float(p) > float(own[item.id]) * (1 + 1e-5) for p in own)
            assert item.entropy == pytest.approx(float(-(own * own.log()).sum()), rel=1e-3)


@pytest.mark.parametrize(("beams", "interval"), [(4, 4), (16, 1)])
def test_cache_is_measured_more_often_with_many_beams(beams: int, interval: int) -> None:
    """A step of many beams takes longer, and the cache grows by as many rows."""
    request = core.Request("Once upon a time", config={"num_beams": beams, "max_new_tokens": 9})
    events = core.run(core.load("storyteller"), request).events
    steps = [event.step for event in events if isinstance(event, CacheMeasured)]
    assert steps == [*range(0, 9, interval), 9]
