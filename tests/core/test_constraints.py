"""Constrained beam search: results meet the constraints, and impossible constraints are refused."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.beams.constraints import ConstraintProgress, Constraints, make_phrase
from decodescope.core.errors import ParameterError, StrategyError, TokenizerMissingError
from decodescope.core.events import BeamsRanked, BeamStep
from tests.core import tiny
from tests.core.beam_reference import constrained, contains, exhaustive, log_probabilities, run
from tests.long import every

KINDS = ("gpt2", "llama", "mistral", "gemma2", "gemma3", "t5", "bart")
WANTED: dict[str, list[list[list[int]]]] = {
    "word": [[[9]]],
    "phrase": [[[9, 30, 41]]],
    "two words": [[[9]], [[33]]],
    "two phrases": [[[9, 30]], [[33, 12]]],
    "alternatives": [[[9, 30], [33, 12]], [[50]]],
    "uneven": [[[9]], [[33, 12, 9]]],
}


def flat(phrases: list[list[list[int]]]) -> list[Any]:
    """force_words_ids: a phrase of one alternative without its outer list."""
    return [alternatives[0] if len(alternatives) == 1 else alternatives for alternatives in phrases]


def meets(text: tuple[int, ...], phrases: list[list[list[int]]]) -> bool:
    return all(any(contains(text, alternative) for alternative in phrase) for phrase in phrases)


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("kind", every(3, KINDS))
def test_constrained_search_equals_the_reference_search(kind: str, name: str) -> None:
    """force_words_ids mean what they meant in transformers 4."""
    model, ids, phrases = tiny.make(kind, scale=2.0), tiny.prompt(), WANTED[name]
    eos = {2, 17, 44}
    expected = constrained(model, ids, phrases, beams=4, steps=9, eos=eos)
    found = run(
        model, ids, force_words_ids=flat(phrases), num_beams=4, max_new_tokens=9, eos_token_id=sorted(eos),
        num_return_sequences=4,
    )  # fmt: skip
    assert [tuple(text) for text in found.sequences] == [text for text, _ in expected]
    assert found.scores == pytest.approx([score for _, score in expected], abs=2e-4)
    assert all(meets(text, phrases) for text, _ in expected)


@pytest.mark.parametrize("pool", ["paper", "transformers"])
@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("kind", every(2, ["t5", "llama"]))
def test_results_meet_all_constraints_with_exact_scores(kind: str, name: str, pool: str) -> None:
    """And its score is the sum of its log-probabilities, divided by its length."""
    model, ids, phrases = tiny.make(kind, seed=3, scale=2.0), tiny.prompt(), WANTED[name]
    found = run(
        model, ids, force_words_ids=flat(phrases), num_beams=6, max_new_tokens=8, num_return_sequences=6,
        eos_token_id=[2, 17, 44], options={"pool": pool},
    )  # fmt: skip
    ranked = next(event for event in found.events if isinstance(event, BeamsRanked))
    assert ranked.hypotheses
    for hypothesis in ranked.hypotheses:
        assert meets(hypothesis.ids, phrases)
        tables = [log_probabilities(model, ids, [hypothesis.ids[:place]])[0] for place in range(hypothesis.length)]
        total = sum(table[token] for table, token in zip(tables, hypothesis.ids, strict=True))
        assert hypothesis.log_probability == pytest.approx(total, abs=2e-3)
        assert hypothesis.score == pytest.approx(total / hypothesis.length, abs=1e-3)


@pytest.mark.parametrize("phrases", [[[[5]]], [[[4, 3]]], [[[5], [1, 1]]], [[[0]], [[3]]], [[[1, 1]]]])
def test_search_with_enough_beams_is_exhaustive(phrases: list[list[list[int]]]) -> None:
    """On six tokens: exactly the texts that meet the constraints, in order."""
    model, ids = tiny.make("llama", scale=2.0, vocab_size=6), [3, 4, 5, 4]
    expected = [(text, score) for text, score in exhaustive(model, ids, 4, 2, 1.0) if meets(text, phrases)]
    found = run(
        model, ids, force_words_ids=flat(phrases), num_beams=6**4, max_new_tokens=4,
        num_return_sequences=len(expected), options={"pool": "paper"},
    )  # fmt: skip
    assert {tuple(text) for text in found.sequences} == {text for text, _ in expected}
    assert found.scores == pytest.approx([score for _, score in expected], abs=1e-4)


def test_paper_pool_finds_texts_at_least_as_good_as_transformers() -> None:
    """Better texts than forcing the word at the very end, which is what the other pool comes to."""
    model, ids = tiny.make("llama", scale=1.5), tiny.prompt()
    settings: dict[str, Any] = {"force_words_ids": [[33, 12]], "num_beams": 6, "max_new_tokens": 12, "eos_token_id": 60}
    paper = run(model, ids, options={"pool": "paper"}, **settings)
    four = run(model, ids, options={"pool": "transformers"}, **settings)
    assert paper.scores is not None
    assert four.scores is not None
    assert paper.scores[0] >= four.scores[0] - 1e-6


def test_prompt_tokens_do_not_count() -> None:
    ids = [*tiny.prompt(), 9, 30, 41]
    found = run(tiny.shared("llama"), ids, force_words_ids=[[9, 30, 41]], num_beams=4)
    assert contains(tuple(found.sequences[0]), [9, 30, 41])


def test_candidates_report_constraint_progress() -> None:
    found = run(tiny.shared("llama"), tiny.prompt(), force_words_ids=[[9, 30], [41]], num_beams=4, max_new_tokens=8)
    nodes = {item.node: item for event in found.events if isinstance(event, BeamStep) for item in event.candidates}
    assert {item.progress for item in nodes.values()} == {0, 1, 2, 3}
    assert {event.required for event in found.events if isinstance(event, BeamStep)} == {3}
    ranked = next(event for event in found.events if isinstance(event, BeamsRanked))
    assert {nodes[hypothesis.node].progress for hypothesis in ranked.hypotheses} == {3}


@pytest.mark.parametrize(
    ("settings", "words", "reason"),
    [
        ({"max_new_tokens": 2}, [[9, 30, 41]], "takes at least 3 tokens, but only 2"),
        ({"max_new_tokens": 3, "forced_eos_token_id": 2}, [[9, 30, 41]], "only 2 are allowed"),
        ({"suppress_tokens": [30]}, [[9, 30]], "suppress_tokens"),
        ({"bad_words_ids": [[9, 30]]}, [[41, 9, 30]], "bad_words_ids"),
        ({"no_repeat_ngram_size": 1}, [[9, 9]], "no_repeat_ngram_size"),
        ({}, [[9, 500]], "the vocabulary has 61 tokens"),
        ({}, [[9, 2]], "end token"),
        ({}, [[]], "Pass a list of phrases"),
        ({}, [["nine"]], "Pass a list of phrases"),
    ],
)
def test_impossible_constraints_are_refused(settings: dict[str, Any], words: list[Any], reason: str) -> None:
    config = GenerationConfig(**{"max_new_tokens": 12, "num_beams": 3, **settings})
    config.force_words_ids = words
    with pytest.raises(ParameterError, match=reason) as caught:
        core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config))
    assert caught.value.parameter == "force_words_ids"


def test_an_impossible_alternative_is_left_out() -> None:
    found = run(tiny.shared("llama"), tiny.prompt(), force_words_ids=[[[9], [33]]], num_beams=3, suppress_tokens=[9])
    assert 33 in found.sequences[0]


def test_conflicting_constraints_raise_an_error() -> None:
    """Each phrase alone is possible; together an n-gram would repeat."""
    with pytest.raises((StrategyError, ParameterError), match=r"constraints|banned"):
        run(tiny.shared("llama"), tiny.prompt(), force_words_ids=[[9], [9]], num_beams=3, no_repeat_ngram_size=1)


def test_search_without_constraints_equals_beam_search() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    assert run(model, ids, "constrained_beam_search").sequences == run(model, ids, "beam_search").sequences


def test_must_contain_without_a_tokenizer_raises_an_error() -> None:
    with pytest.raises(TokenizerMissingError):
        run(tiny.shared("llama"), tiny.prompt(), "constrained_beam_search", options={"must_contain": "dragon"})


@pytest.mark.parametrize("name", ["storyteller", "summarizer"])
def test_must_contain_accepts_words_and_alternatives(name: str) -> None:
    model = core.load(name, device="cpu")
    config = GenerationConfig(num_beams=6, max_new_tokens=40, num_return_sequences=2)
    request = core.Request(
        "Once upon a time there was a little fox.", config, "constrained_beam_search",
        {"must_contain": "dragon | knight, lived happily"},
    )  # fmt: skip
    for text in core.run(model, request).texts:
        assert "dragon" in text or "knight" in text
        assert "lived happily" in text


def test_texts_that_end_early_meet_all_constraints() -> None:
    """With the paper's pool a met hypothesis can end long before the limit."""
    model, ids = tiny.make("llama", scale=2.0), tiny.prompt()
    found = run(
        model, ids, force_words_ids=[[9]], num_beams=4, max_new_tokens=30, num_return_sequences=4, length_penalty=0.0,
        eos_token_id=list(range(40, 60)), options={"pool": "paper"},
    )  # fmt: skip
    assert min(map(len, found.sequences)) < 30
    assert all(9 in text for text in found.sequences)


def test_progress_falls_back_inside_a_broken_phrase() -> None:
    wanted = Constraints([make_phrase([[1, 1, 2]]), make_phrase([[2, 3]])])
    progress = wanted.start
    for token in (1, 1, 1, 2):
        progress = wanted.advance(progress, token)
    assert progress == ConstraintProgress(pending=(1,), met=(0,))
    assert wanted.min_remaining(progress) == 2
    for token in (2, 3):
        progress = wanted.advance(progress, token)
    assert progress.is_complete
    assert wanted.tokens_met(progress) == wanted.total_tokens == 5


def test_alternatives_that_extend_a_shorter_one_are_dropped() -> None:
    assert make_phrase([[4, 5, 6], [4, 5], [7]]).alternatives == ((4, 5), (7,))
