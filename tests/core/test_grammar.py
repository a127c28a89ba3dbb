"""Grammars: the mask compared with brute force, every strategy under it, and errors for invalid grammars."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import product
from typing import Any

import jsonschema
import pytest
import torch
from scipy import stats
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.events import BeamsRanked, BeamStep, DraftRound, SequenceFinished, TokenChosen
from decodescope.core.explain.words import quote, share
from decodescope.core.grammar.length_bounds import BYTE_MEASURES, regex_lower_bound
from decodescope.core.grammar.shortest_text import min_tokens
from decodescope.core.models.token_bytes import token_bytes
from tests.core import spelling_models, tiny

ENDS = 2
CARD = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "n": {"enum": [1, 12]}, "b": {"type": "boolean"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
REGEX = "a(b|bb)?c? ?(dog|cat)"
WORDS = ["abc", "ab cat", "ba", "abba", "a red dog"]


def language(grammar: dict[str, Any]) -> set[str]:
    """All texts of a grammar whose language is small, found without llguidance."""
    if "choice" in grammar:
        return set(grammar["choice"])
    parts = [["a"], ["", "b", "bb"], ["", "c"], ["", " "], ["dog", "cat"]]
    found = {"".join(words) for words in product(*parts)}
    assert all(re.fullmatch(REGEX, text) for text in found)
    return found


def write(model: core.LoadedModel, grammar: Any, strategy: str = "greedy", seed: int = 0, **config: Any) -> core.Result:
    settings = {"max_new_tokens": 40, **config}
    ids = [5, 9, 30, 12]
    return core.run(model, core.Request(ids, settings, strategy=strategy, options={"grammar": grammar}, seed=seed))


def answer(model: core.LoadedModel, ids: list[int]) -> str:
    """Return the text of the tokens after the prompt; special tokens have none."""
    assert model.tokenizer is not None
    anchor = model.tokenizer.convert_tokens_to_ids("d")
    return str(model.tokenizer.decode([anchor, *ids], skip_special_tokens=True)).removeprefix("d")


class BruteForce(LogitsProcessor):
    """The mask by trying every token: its text must begin a text of the language, and the end must find a whole one."""

    def __init__(self, model: core.LoadedModel, texts: set[str], start: int) -> None:
        self.model, self.texts, self.start = model, texts, start
        self._known: dict[str, list[int]] = {}

    def allowed(self, ids: list[int]) -> list[int]:
        so_far = answer(self.model, ids)
        if so_far not in self._known:
            self._known[so_far] = self._tried(ids, so_far)
        return self._known[so_far]

    def _tried(self, ids: list[int], so_far: str) -> list[int]:
        found = [ENDS] if so_far in self.texts else []
        for token in range(3, len(self.model.tokenizer)):  # type: ignore[arg-type]
            text = answer(self.model, [*ids, token])
            if text != so_far and "\ufffd" not in text and any(other.startswith(text) for other in self.texts):
                found.append(token)
        return found

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        masked = torch.full_like(scores, -float("inf"))
        for row, ids in enumerate(input_ids[:, self.start :].tolist()):
            keep = self.allowed(ids) if ENDS not in ids else [ENDS]
            masked[row, keep] = scores[row, keep]
        return masked


@pytest.mark.parametrize("kind", spelling_models.KINDS)
@pytest.mark.parametrize("grammar", [{"regex": REGEX}, {"choice": WORDS}], ids=["regex", "choice"])
def test_grammar_mask_equals_brute_force(kind: str, grammar: dict[str, Any]) -> None:
    """Greedily and in beams, as transformers with a mask found without llguidance."""
    model, texts = spelling_models.model(kind), language(grammar)
    if kind == "words":  # this tokenizer separates words by spaces in any case
        texts = {" " + text for text in texts}
        grammar = {"choice": sorted(texts)}
    brute = LogitsProcessorList([BruteForce(model, texts, 4)])
    for beams in (1, 3):
        config = GenerationConfig(max_new_tokens=40, num_beams=beams, do_sample=False, pad_token_id=0, eos_token_id=2)
        (expected,) = tiny.reference(model, [5, 9, 30, 12], config, logits_processor=brute)
        result = write(model, grammar, "beam_search" if beams > 1 else "greedy", num_beams=beams)
        assert result.sequences[0] == expected
        assert answer(model, expected) in texts


@pytest.mark.parametrize("strategy", ["beam_search", "diverse_beam_search"])
def test_beam_steps_report_what_the_grammar_forbade(strategy: str) -> None:
    model, more = spelling_models.model(), {"num_beam_groups": 2} if strategy == "diverse_beam_search" else {}
    brute, paths, seen = BruteForce(model, set(WORDS), 4), {0: list[int]()}, 0
    for step in write(model, {"choice": WORDS}, strategy, num_beams=4, max_new_tokens=12, **more).events:
        if not isinstance(step, BeamStep):
            continue
        reported = {wish.parent: wish for wish in step.overruled}
        for one in step.candidates:
            before = paths[one.parent]
            paths[one.node] = [*before, one.id]
            with torch.inference_mode():
                shares = model.model(torch.tensor([[5, 9, 30, 12, *before]])).logits[0, -1].softmax(-1)
            first = int(shares.argmax())
            assert (one.parent in reported) == (first not in brute.allowed(before))
            left = float(shares[brute.allowed(before)].sum())
            assert dict(step.forbidden)[one.parent] == pytest.approx(1 - left, abs=1e-5)
            if wish := reported.get(one.parent):
                assert (wish.id, wish.piece) == (first, model.pieces[first])
                assert wish.raw_probability == pytest.approx(float(shares[first]), abs=1e-5)
                assert (
                    f"The model preferred {quote(wish.piece)} ({share(wish.raw_probability)}); the grammar forbade it."
                    in (str(core.explain_candidate(one, step, 4)))
                )
                seen += 1
    assert seen > 5


def test_grammar_statistics_of_the_best_beam() -> None:
    """A search of one beam writes the greedy text, and its figures are those of that text."""
    model, grammar = spelling_models.model(), {"choice": WORDS}
    greedy = write(model, grammar)
    tokens = [event for event in greedy.events if isinstance(event, TokenChosen)]
    one, four = (write(model, grammar, "beam_search", num_beams=beams) for beams in (1, 4))
    assert one.sequences == greedy.sequences
    ways = []
    for result in (one, four):
        steps = [event for event in result.events if isinstance(event, BeamStep)]
        (ranking,) = [event for event in result.events if isinstance(event, BeamsRanked)]
        ways.append(core.beam_grammar_figures(steps, ranking.hypotheses[0].node))
    of_tokens = core.grammar_figures(tokens)
    assert ways[0] is not None
    assert of_tokens is not None
    assert (ways[0].steps, ways[0].overruled) == (of_tokens.steps, of_tokens.overruled)
    assert ways[0].removed == pytest.approx(of_tokens.removed, abs=1e-5)
    assert ways[1] is not None
    assert ways[1].steps == len(four.sequences[0])
    assert "of the probability on average" in str(core.explain_grammar(ways[1]))
    assert core.beam_grammar_figures([], 0) is None


def test_samples_follow_the_renormalized_masked_distribution() -> None:
    """Chi-square over whole texts, whose probabilities are multiplied up from masked softmaxes."""
    model, texts = spelling_models.model(), set(WORDS)
    brute = BruteForce(model, texts, 4)
    expected: Counter[str] = Counter()
    open_paths: list[tuple[list[int], float]] = [([], 1.0)]
    while open_paths:
        ids, share = open_paths.pop()
        with torch.inference_mode():
            logits = model.model(torch.tensor([[5, 9, 30, 12, *ids]])).logits[0, -1]
        allowed = brute.allowed(ids)
        for token, p in zip(allowed, torch.softmax(logits[allowed].double(), -1).tolist(), strict=True):
            if token == ENDS:
                expected[answer(model, ids)] += share * p
            elif share * p > 1e-4:
                open_paths.append(([*ids, token], share * p))
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-2)
    result = write(model, {"choice": WORDS}, "sampling", num_return_sequences=800, max_new_tokens=12, top_k=0)
    seen = Counter(answer(model, ids) for ids in result.sequences)
    likely = [text for text in expected if expected[text] * 800 >= 5]
    counts = [seen[text] for text in likely]
    wanted = [expected[text] for text in likely]
    scaled = [share * sum(counts) / sum(wanted) for share in wanted]
    assert set(seen) <= texts
    assert stats.chisquare(counts, scaled).pvalue > 1e-3


def test_hundred_sampled_texts_are_valid_json_of_the_schema() -> None:
    options = {"grammar": {"json_schema": CARD}, "seed_each": True}
    config = {"max_new_tokens": 80, "num_return_sequences": 100}
    result = core.run(
        spelling_models.model(), core.Request([5, 9], config, strategy="sampling", options=options, top_n=0)
    )
    assert len(set(result.texts)) > 50
    for text in result.texts:
        jsonschema.validate(json.loads(text), CARD)
    alone = write(spelling_models.model(), {"json_schema": CARD}, "sampling", seed=3)
    assert alone.texts == write(spelling_models.model(), {"json_schema": CARD}, "sampling", seed=3).texts


@pytest.mark.parametrize(
    "strategy", ["diverse_beam_search", "beam_sampling", "contrastive", "dola", "sampling", "early_exit"]
)
def test_every_strategy_follows_the_grammar(strategy: str) -> None:
    result = write(spelling_models.model(), {"json_schema": CARD}, strategy)
    jsonschema.validate(json.loads(result.texts[0]), CARD)
    assert result.sequences[0][-1] == ENDS


@pytest.mark.parametrize("strategy", ["assisted", "token_tree", "prompt_lookup", "early_exit"])
def test_drafts_under_a_grammar_do_not_change_the_text(strategy: str) -> None:
    model, grammar = spelling_models.model(), {"json_schema": CARD}
    drafters = (spelling_models.similar_model(),) if strategy in ("assisted", "token_tree") else ()
    request = core.Request(
        [5, 9, 30, 12], {"max_new_tokens": 40}, strategy=strategy, options={"grammar": grammar}, drafters=drafters
    )
    assert core.run(model, request).sequences == write(model, grammar).sequences


def test_encoder_decoder_follows_the_grammar_from_the_start() -> None:
    """Its decoder begins with nothing, where SentencePiece leaves out the first space."""
    result = write(spelling_models.model("pieces", "t5"), {"choice": ["cat dog", "dog"]})
    assert result.texts[0] in ("cat dog", "dog")


def test_events_report_the_grammar_stage() -> None:
    result = write(spelling_models.model(), {"choice": WORDS})
    first = next(event for event in result.events if isinstance(event, TokenChosen))
    stage = first.funnel[-1]
    assert (stage.name, stage.kind) == ("grammar", "ban")
    assert 0 < stage.survivors < 6
    assert stage.mass == pytest.approx(sum(item.raw_probability for item in first.alternatives if item.probability > 0))
    assert first.alternatives[0].probability == 0.0  # the first choice was forbidden


@pytest.mark.parametrize(
    ("grammar", "cause"),
    [
        ({"json_schema": {"type": "nonsense"}}, "this is not a valid JSON schema: Invalid type: nonsense."),
        ({"json_schema": "{bad"}, "not valid JSON: line 1, character 2"),
        ({"json_schema": False}, "no text can match this schema"),
        ({"json_schema": {"anyOf": []}}, "no text can match this schema"),
        ({"json_schema": {"type": "array", "uniqueItems": True}}, "cannot be enforced token by token: uniqueItems"),
        ({"json_schema": {"$ref": "file:///x"}}, "not present"),
        ({"json_schema": 7}, "A JSON schema is an object"),
        ({"json_schema": json.loads("[" * 300 + "]" * 300)}, "levels deep"),
        ({"regex": "("}, "this is not a valid regular expression: unclosed group"),
        ({"regex": "[^\\s\\S]"}, "no text can match this regular expression"),
        ({"regex": ""}, "The grammar is empty"),
        ({"regex": "a" * 100_001}, "100,001 characters"),
        ({"regex": 5}, "Pass it as a string"),
        ({"lark": 'start: "a" foo'}, 'unknown name: "foo"'),
        ({"lark": "start: " + "(" * 400 + '"a"' + ")" * 400}, "too deeply nested"),
        ({"lark": 'start: start "a"'}, "no text can match this Lark grammar"),
        ({"choice": []}, "The choice is empty"),
        ({"choice": ["a", ""]}, "One of the choices is empty"),
        ({"choice": "red"}, "Pass a list of strings"),
        ({"choice": ["a"] * 2000}, "2,000 choices"),
        ({"choice": ["a"], "regex": "a"}, "Specify one of json_schema, regex, lark, gbnf, choice"),
        ({"ebnf": "x"}, "no grammar type “ebnf”"),
        ("a+", "Specify one of"),
    ],
)
def test_invalid_grammar_is_refused_with_a_plain_reason(grammar: Any, cause: str) -> None:
    with pytest.raises(ParameterError) as caught:
        write(spelling_models.model(), grammar)
    assert cause in caught.value.cause
    assert "turn the grammar off" in caught.value.remedy
    assert "Unsatisfiable" not in caught.value.cause
    assert "<state>" not in caught.value.cause


def test_grammar_without_a_tokenizer_raises_an_error() -> None:
    with pytest.raises(ParameterError, match="has no tokenizer"):
        write(tiny.shared("llama"), {"choice": ["a"]})


def test_missing_llguidance_error_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decodescope.core.system.optional_deps.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"llguidance is not installed; install it with pip install llguidance"):
        write(spelling_models.model(), {"choice": ["a"]})


def test_beginning_must_match_the_grammar() -> None:
    model = spelling_models.model()
    request = core.Request([5, 9], {"max_new_tokens": 9}, options={"grammar": {"choice": WORDS}}, beginning=["ab"])
    assert core.run(model, request).texts[0] in ("c", " cat", "ba")
    with pytest.raises(ParameterError, match="no text of it begins like the required beginning"):
        core.run(model, core.Request([5], {}, options={"grammar": {"choice": WORDS}}, beginning=["x"]))


@pytest.mark.parametrize("strategy", ["greedy", "beam_search"])
@pytest.mark.parametrize(
    ("grammar", "limit", "reason", "whole"),
    [
        ({"choice": ["abc"]}, 9, "grammar", True),
        ({"regex": "a{1,9}"}, 4, "length", True),
        ({"lark": 'start: "abc"{10}'}, 8, "length", False),
    ],
)
def test_finished_event_states_whether_the_text_is_complete(
    strategy: str, grammar: dict[str, Any], limit: int, reason: str, whole: bool
) -> None:
    result = write(spelling_models.model(), grammar, strategy, max_new_tokens=limit, suppress_tokens=[])
    (end,) = [event for event in result.events if isinstance(event, SequenceFinished)]
    if end.reason == "eos":  # after any number of letters it may
        assert "regex" in grammar
    else:
        assert end.reason == reason
    assert end.whole is whole


def test_model_without_end_token_stops_when_the_grammar_ends() -> None:
    result = write(spelling_models.model(), {"choice": ["abc", "ba"]}, eos_token_id=[10_000])
    (end,) = [event for event in result.events if isinstance(event, SequenceFinished)]
    assert (end.reason, end.whole) == ("grammar", True)
    assert result.texts[0] in ("abc", "ba")


@pytest.mark.parametrize(
    ("grammar", "fits"),
    [
        ({"choice": ["abcabc", "xyzxyz"]}, 2),  # abc + abc
        ({"regex": "[xyz]{6}(q|rr)?"}, 6),
        ({"json_schema": CARD}, 10),
        ({"json_schema": {"const": "xyz"}}, 5),
        ({"json_schema": {"type": "array", "items": {"type": "integer"}, "minItems": 9}}, 11),
        ({"json_schema": {"type": "object", "properties": {"é": {"const": 1}}, "required": ["é", "é"]}}, 8),
        ({"json_schema": {"enum": ["xyzxyz", "zyxzyx"]}}, 8),
    ],
)
def test_too_small_token_limit_is_refused_before_the_run(grammar: dict[str, Any], fits: int) -> None:
    """The bound is valid: a run is not refused where trial finds a text of that length."""
    own = token_bytes(spelling_models.model())
    assert 0 < min_tokens(grammar, own, 0) <= fits
    assert write(spelling_models.model(), grammar, max_new_tokens=fits).events
    if "json_schema" not in grammar:
        with pytest.raises(ParameterError, match="No text of the grammar fits into 1 new tokens"):
            write(spelling_models.model(), grammar, max_new_tokens=1)


NODE = {"type": "object", "required": ["v", "next"], "properties": {"v": {"const": "x" * 30}, "next": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("schema", "least"),
    [
        ({"enum": ["x" * 90, "y" * 80]}, 82),
        ({"anyOf": [{"const": "x" * 90}, {"type": "array", "minItems": 40}]}, 81),
        ({"allOf": [{"type": "string", "minLength": 60}, {"type": "string", "pattern": "^[xy]{70}$"}]}, 72),
        ({"type": ["string", "array"], "minLength": 60, "minItems": 30}, 61),
        ({"type": "array", "prefixItems": [{"const": "x" * 50}], "items": {"const": 12}, "minItems": 3}, 60),
        ({"type": "array", "minItems": 10**9}, 2 * 10**9 + 1),
        ({"type": "object", "minProperties": 20}, 120),
        ({"const": {"a": ["x" * 50]}}, 60),
        ({"type": "integer", "minimum": 10**9}, 10),
        ({"type": "string", "format": "uuid"}, 38),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"anyOf": [NODE, {"const": "y" * 44}]}}}, 46),
        ({"minLength": 99}, 0),
        ({"type": "number", "minimum": 10**9}, 0),
        (True, 0),
    ],
)
def test_minimum_length_of_a_schema(schema: Any, least: int) -> None:
    """In tokens of one letter each, so that every letter counts."""
    assert min_tokens({"json_schema": schema}, [bytes([code]) for code in range(256)], 1) == least


def test_minimum_length_counts_tokens_that_span_several_parts() -> None:
    schema = {"type": "object", "required": ["id"]}
    assert min_tokens({"json_schema": schema}, [b'{"id":', b"1", b"}"], 0) <= 3


def test_endless_schema_is_refused() -> None:
    for schema in (
        NODE,
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#"}}}},
    ):
        with pytest.raises(ParameterError, match="this schema never allows a text to end"):
            write(spelling_models.model(), {"json_schema": schema}, max_new_tokens=100)


@pytest.mark.parametrize(
    "grammar",
    [{"regex": "a\ud800"}, {"lark": 'start: "\ud800"'}, {"choice": ["\udfff"]}, {"json_schema": {"const": "\ud800"}},
     {"json_schema": '{"const": NaN}'}, {"json_schema": {"const": float("inf")}}, {"regex": "abc\\"}],
)  # fmt: skip
def test_unwritable_grammar_is_refused_before_compilation(grammar: dict[str, Any]) -> None:
    reason = core.grammar_problem(grammar)
    assert reason.startswith(
        ("The grammar contains half", "The schema contains values that JSON", "The regular expression ends")
    )
    with pytest.raises(ParameterError, match="Correct it"):
        write(spelling_models.model(), grammar)
    assert core.grammar_problem({"regex": r"abc\\\\"}) == ""


@pytest.mark.parametrize(
    ("pattern", "width"),
    [("abc", 3), ("a|bc", 1), ("(ab|c)d", 2), ("[^]a]x*y+", 2), ("a{3,}b?", 3), ("(?:ab){2}", 4), (r"\d\.\s", 3),
     ("^ab$", 2), ("a{2}{3}b**", 6), ("a{9}{0}", 0), ("(?i)abc", 0), ("(", 0), ("a??b", 1), (r"\p{L}+a", 0)],
)  # fmt: skip
def test_minimum_length_of_a_regular_expression(pattern: str, width: int) -> None:
    assert regex_lower_bound(pattern, BYTE_MEASURES).bytes == width


def test_draft_forbidden_by_the_grammar_is_rejected_with_reason() -> None:
    """Prompt lookup proposes a text of the prompt that the grammar forbids at this position."""
    model = spelling_models.model()
    a, b, c, d = (model.tokenizer.convert_tokens_to_ids(letter) for letter in "abcd")  # type: ignore[union-attr]
    request = core.Request(
        [c, a, b, a, d, a], {"max_new_tokens": 12}, strategy="prompt_lookup",
        options={"grammar": {"regex": "cd{9}"}, "schedule": "constant"},
    )  # fmt: skip
    rounds = [event for event in core.run(model, request).events if isinstance(event, DraftRound)]
    refused = [(node, event) for event in rounds for node in event.nodes if node.fate == "refused" and node.cut_by]
    assert refused
    for node, event in refused:
        assert (node.cut_by, node.target_probability) == ("grammar", 0.0)
        assert "The grammar forbids it here" in str(core.explain_draft(node, event))


def test_explanation_names_the_token_the_model_preferred() -> None:
    result = write(spelling_models.model(), {"choice": WORDS})
    first = next(event for event in result.events if isinstance(event, TokenChosen))
    assert f"The model preferred {core.words.quote(first.alternatives[0].text)}" in str(core.explain_token(first))


@pytest.mark.parametrize("strategy", ["greedy", "sampling", "beam_search", "lookahead"])
def test_settings_that_ban_all_allowed_tokens_are_named(strategy: str) -> None:
    with pytest.raises(ParameterError, match="other settings ban all that the grammar allows") as reported:
        write(spelling_models.model(), {"choice": ["abc", "ba"]}, strategy, min_new_tokens=30)
    assert "minimum length" in reported.value.remedy
    assert reported.value.parameter == "grammar"
