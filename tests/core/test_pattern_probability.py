"""Bounds on the probability that an answer matches a pattern, against all answers and against sampling."""

from __future__ import annotations

import itertools
import math
import random
import re
import threading
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t
from scipy import stats
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from decodescope import core
from decodescope.core.errors import DecodescopeError, ParameterError, StrategyError
from decodescope.core.likelihood.text_pattern import PLACES, PatternAutomaton, Place, as_patterns
from tests.core import tiny
from tests.long import slow

WORDS = ["</s>", "a", "b", "ab", "Ġ", "Ã", "©"]
"""The last two are the bytes of é."""
LENGTH = 4


def _model(kind: str = "llama") -> core.LoadedModel:
    """A tiny model of seven tokens, in which texts have several spellings."""
    more = {} if kind in ("t5", "mamba") else {"bos_token_id": None, "pad_token_id": None}
    made = tiny.make(kind, scale=2.0, vocab_size=len(WORDS), eos_token_id=0, **more)
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    own = Tokenizer(models.BPE(vocabulary, [("a", "b")]))
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=own, eos_token="</s>")
    return core.wrap(made.model, tokenizer, "seven words")


def _request(**settings: object) -> core.Request:
    return core.Request([1, 2, 5, 6], {"do_sample": True, "max_new_tokens": LENGTH, "top_k": 0, **settings})


def _answers(model: core.LoadedModel, prompt: list[int], **settings: Any) -> dict[str, float]:
    """The probability of every answer of at most LENGTH tokens, by transformers' own classes."""
    processors = t.LogitsProcessorList()
    if "repetition_penalty" in settings:
        processors.append(t.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
    for name, kind in (
        ("temperature", t.TemperatureLogitsWarper), ("top_k", t.TopKLogitsWarper), ("top_p", t.TopPLogitsWarper),
    ):  # fmt: skip
        if settings.get(name):
            processors.append(kind(settings[name]))
    found: dict[str, float] = {}
    open_texts: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        rows = torch.tensor([[*prompt, *ids] for ids in open_texts])
        with torch.inference_mode():
            shares = processors(rows, model.model(rows).logits[:, -1].float()).double().softmax(-1)
        following: dict[tuple[int, ...], float] = {}
        for (ids, mass), row in zip(open_texts.items(), shares.tolist(), strict=True):
            for token, share in enumerate(row):
                if token == 0:
                    _add(found, model, ids, mass * share)
                elif share > 0:
                    following[*ids, token] = mass * share
        open_texts = following
    for ids, mass in open_texts.items():
        _add(found, model, ids, mass)
    return found


def _add(found: dict[str, float], model: core.LoadedModel, ids: tuple[int, ...], mass: float) -> None:
    text = model.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
    found[text] = found.get(text, 0.0) + mass


def _expected(answers: dict[str, float], expression: str, place: Place) -> float:
    match = {"begins": re.match, "contains": re.search, "full": re.fullmatch}[place]
    return sum(mass for text, mass in answers.items() if match(expression, text))


SETTINGS: list[dict[str, float]] = [
    {"temperature": 1.0}, {"temperature": 1.3, "top_k": 5}, {"temperature": 0.8, "top_p": 0.8},
    {"repetition_penalty": 1.4, "temperature": 0.7, "top_k": 6, "top_p": 0.95},
]  # fmt: skip
EXPRESSIONS = ["ab", "(?:ab)+$", "a|é b?", r"\bb\b", "[^a]{2}", "é.*b", ""]


@pytest.mark.parametrize("settings", SETTINGS)
def test_bounds_equal_the_sum_over_all_answers(settings: dict[str, float]) -> None:
    model, request = _model(), _request(**settings)
    answers = _answers(model, [1, 2, 5, 6], **settings)
    assert math.isclose(sum(answers.values()), 1.0, abs_tol=1e-6)
    for expression, place in itertools.product(EXPRESSIONS, PLACES):
        expected = _expected(answers, expression, place)
        exact = core.pattern_probability(model, request, re.compile(expression), place, tolerance=0.0)
        assert exact.lower == pytest.approx(expected, abs=1e-6)
        assert exact.upper == pytest.approx(expected, abs=1e-6)
        rough = core.pattern_probability(model, request, re.compile(expression), place, max_prefixes=9)
        assert rough.lower - 1e-6 <= expected <= rough.upper + 1e-6


def test_rows_count_all_spellings_of_a_text_together() -> None:
    model, request = _model(), _request()
    answers = _answers(model, [1, 2, 5, 6])
    rows = core.pattern_probability(model, request, "b", "contains", tolerance=0.0)
    for row in rows:
        begins = sum(mass for text, mass in answers.items() if text.startswith(row.text))
        assert row.probability <= begins + 1e-6
    by_text = {row.text: row for row in rows}
    assert by_text["ab"].spellings == 2
    assert by_text["ab"].probability == pytest.approx(
        sum(mass for text, mass in answers.items() if text.startswith("ab")), abs=2e-3
    )


@pytest.mark.parametrize("kind", ["mistral", "gemma2", "mamba", "t5"])
def test_bounds_equal_the_scores_of_all_answers_on_other_models(kind: str) -> None:
    model = _model(kind)
    request = core.Request([1, 2, 5, 6], {"do_sample": True, "max_new_tokens": 3, "top_k": 0})
    texts = [list(ids) for length in (1, 2, 3) for ids in itertools.product(range(1, 7), repeat=length)]
    texts = [ids if len(ids) == 3 else [*ids, 0] for ids in texts] + [[0]]
    scored = core.score_many(model, texts, 0, given=[request.prompt] * len(texts))
    expected = 0.0
    for ids, tokens in zip(texts, scored, strict=True):
        text = model.tokenizer.decode([token for token in ids if token], clean_up_tokenization_spaces=False)
        expected += math.exp(sum(token.raw_log_probability for token in tokens)) if "ab" in text else 0.0
    found = core.pattern_probability(model, request, "ab", "contains", tolerance=0.0)
    assert found.lower == pytest.approx(expected, abs=1e-5)
    assert found.upper == pytest.approx(expected, abs=1e-5)


def test_stop_string_ends_the_answer() -> None:
    model = _model()
    request = _request(stop_strings=["b"])
    assert core.pattern_probability(model, request, "ba", "contains", tolerance=0.0).upper == 0.0
    ends = core.pattern_probability(model, request, re.compile("[^b]*b"), "full", tolerance=0.0)
    contains = core.pattern_probability(model, request, "b", "contains", tolerance=0.0)
    assert ends.lower == pytest.approx(contains.lower, abs=1e-9)


def test_choice_has_bounds_for_each_text_and_for_any() -> None:
    model, request = _model(), _request()
    found = core.pattern_probability(model, request, ["a", "ab", "b"], tolerance=0.0)
    first, second, third = (bounds.lower for bounds in found.bounds)
    assert second < first
    assert found.lower == pytest.approx(first + third, abs=1e-9)


def test_greedy_answer_is_certain() -> None:
    model = _model()
    request = core.Request([1, 2, 5, 6], {"max_new_tokens": LENGTH})
    text = core.run(model, request).texts[0]
    assert core.pattern_probability(model, request, text, "full").lower == 1.0
    assert core.pattern_probability(model, request, text + "a", "begins").upper == 0.0


def test_limit_and_cancel_keep_true_bounds() -> None:
    model, request = _model(), _request()
    cancel, seen = threading.Event(), list[core.PatternProgress]()

    def stop(progress: core.PatternProgress) -> None:
        seen.append(progress)
        cancel.set()

    found = core.pattern_probability(model, request, "b", "contains", tolerance=0.0, progress=stop, cancel=cancel)
    expected = _expected(_answers(model, [1, 2, 5, 6]), "b", "contains")
    assert (len(seen), found.prefixes, found.is_converged) == (1, 1, False)
    assert found.lower < expected < found.upper
    assert seen[0].any_bounds == found.any_bounds


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"num_beams": 2}, StrategyError), ({"mirostat_tau": 3.0}, StrategyError),
        ({"xtc_probability": 0.5}, StrategyError), ({"max_time": 3.0}, StrategyError),
    ],
)  # fmt: skip
def test_settings_without_one_distribution_per_token_are_refused(
    settings: dict[str, object], error: type[DecodescopeError]
) -> None:
    with pytest.raises(error):
        core.pattern_probability(_model(), _request(**settings), "a")


@pytest.mark.parametrize("expression", [r"(a)\1", "(?=a)b", "(?<!a)b", "(?>a)b", "a++", "(", "(?:a{999}){999}"])
def test_expressions_without_an_automaton_are_refused_by_name(expression: str) -> None:
    with pytest.raises(ParameterError) as error:
        as_patterns([core.TextPattern(expression, is_regex=True)])
    assert error.value.parameter == "pattern"


ATOMS = ["a", "b", "\\n", " ", "[ab]", "[^a]", ".", "\\b", "\\B", "^", "$", "\\Z", "\\A"]
ATOMS += ["\\w", "\\s", "\\W", "É", "\\d"]


def _expression(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return rng.choice(ATOMS)
    if kind < 0.6:
        return _expression(rng, depth - 1) + _expression(rng, depth - 1)
    if kind < 0.75:
        return f"(?:{_expression(rng, depth - 1)}|{_expression(rng, depth - 1)})"
    return f"(?:{_expression(rng, depth - 1)})" + rng.choice(["*", "+", "?", "{1,2}", "{2}", "*?"])


def test_automaton_agrees_with_re_and_decides_only_what_is_certain() -> None:
    rng = random.Random(5)
    for _ in range(400):
        expression = rng.choice(["", "(?m)", "(?s)", "(?i)", "(?a)"]) + _expression(rng, 3)
        automata = {place: PatternAutomaton(core.TextPattern(expression, place, True)) for place in PLACES}
        for _ in range(8):
            text = "".join(rng.choice("ab \nAéÉ1") for _ in range(rng.randrange(6)))
            for place, match in (("begins", re.match), ("contains", re.search), ("full", re.fullmatch)):
                expected, own, state = match(expression, text) is not None, automata[place], 0
                for end in range(len(text) + 1):
                    state = own.step(state, text[end - 1]) if end else state
                    assert expected or not own.is_certain(state), (expression, text, place)
                    assert not expected or not own.is_impossible(state), (expression, text, place)
                assert own.accepts(state) == expected, (expression, text, place)


@pytest.mark.parametrize(
    ("pattern", "place"), [(re.compile(r" (little|big) \w+"), "begins"), slow(("she", "contains"))]
)
def test_share_of_sampled_stories_lies_between_the_bounds(pattern: object, place: Place) -> None:
    model = core.load("storyteller")
    request = core.Request("Once upon a time, there was a", {
        "do_sample": True, "max_new_tokens": 6, "temperature": 0.8, "top_p": 0.9, "top_k": 50,
    })  # fmt: skip
    found = core.pattern_probability(model, request, pattern, place)
    assert found.is_converged
    texts = core.run(model, request.with_settings({"num_return_sequences": 300})).texts
    match = re.match if place == "begins" else re.search
    hits = sum(match(pattern, text) is not None for text in texts)  # type: ignore[call-overload]
    assert stats.binomtest(hits, len(texts), min(found.lower + found.upper, 2) / 2).pvalue > 1e-3


def test_texts_of_the_reader_are_those_of_runs() -> None:
    model = core.load("storyteller")
    request = core.Request("Once upon a time", {
        "do_sample": True, "max_new_tokens": 12, "temperature": 2.0, "top_k": 0, "num_return_sequences": 20,
    })  # fmt: skip
    result = core.run(model, request)
    from decodescope.core.likelihood.answer_reader import AnswerReader
    from decodescope.core.likelihood.pattern_probability import prepare_run

    run = prepare_run(model, request, threading.Event())
    for ids, text in zip(result.sequences, result.texts, strict=True):
        reader = AnswerReader(run, as_patterns(text, "full"))
        state = 0
        for token in ids:
            (state,) = reader.follow(int(state), np.array([token])).tolist()
        assert reader.final_verdicts(int(state)) == (1,)
        assert reader.text(ids) == text


def test_text_without_the_space_that_answers_begin_with_is_explained() -> None:
    story = core.load("storyteller")
    request = core.Request("Once upon a time, there was a little", {"do_sample": True, "top_k": 20})
    told = [core.likelihood.explain_pattern(core.pattern_probability(story, request, [one])) for one in ("fox", " fox")]
    assert any("Write a space before it" in line for line in told[0])
    assert not any("Write a space before it" in line for line in told[1])
