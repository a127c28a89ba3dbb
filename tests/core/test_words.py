"""Words to avoid and biases by word: every division of a word into tokens, compared with brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.processors.banned_phrases import PhraseBan, fold
from decodescope.core.processors.word_bias import word_spellings
from tests.core import spelling_models

PROMPT = "cat dog"


def run(model: core.LoadedModel, seed: int = 0, strategy: str | None = None, **settings: Any) -> core.RunResult:
    drafters = settings.pop("drafters", ())
    options = {name: settings.pop(name) for name in [*settings] if name.startswith(("banned_", "word_"))}
    config = {"max_new_tokens": 24, "eos_token_id": None, **settings}
    return core.run(model, core.Request(PROMPT, config, strategy, options, seed=seed), drafters=drafters)


def banned_by_brute_force(model: core.LoadedModel, before: list[int], phrases: list[str], any_case: bool) -> set[int]:
    """The tokens with which the text contains a phrase that it does not contain without them."""
    data = model.token_bytes
    assert data is not None
    normal = (lambda text: fold(text)) if any_case else (lambda text: text)
    wanted = [normal(phrase.encode()) for phrase in phrases]
    text = b""
    for token in before:
        text = b"" if data[token] is None else text + (data[token] or b"")
    count = sum(normal(text).count(phrase) for phrase in wanted)
    found = set()
    for token, more in enumerate(data):
        if more is not None:
            longer = normal(text + more)
            found |= {token} if sum(longer.count(phrase) for phrase in wanted) > count else set()
    return found


@pytest.mark.parametrize("kind", spelling_models.KINDS)
@pytest.mark.parametrize("any_case", [True, False])
def test_banned_tokens_are_those_that_complete_a_phrase(kind: str, any_case: bool) -> None:
    model = spelling_models.model(kind)
    phrases = ["abc", "Dog", "name", " re", "ß", "12"]
    ids = {
        text: model.tokenizer.encode(text, add_special_tokens=False)
        for text in ("a", "ab", "x", "c a", "D", "na", "m", " r")
    }
    context = _context(model, banned_phrases_any_case=any_case)
    ban = PhraseBan(phrases, any_case, context)
    for before in (*ids.values(), [*ids["a"], *ids["ab"]], [2, *ids["a"]]):
        tokens = torch.tensor([before])
        masked = ban(tokens, torch.zeros(1, model.vocabulary))[0]
        found = {token for token, score in enumerate(masked.tolist()) if score == -math.inf}
        assert found == banned_by_brute_force(model, before, phrases, any_case)


def _context(model: core.LoadedModel, **settings: Any) -> Any:
    from decodescope.core.processors.base import Context

    return Context(model, settings, 0, 100, None, None, 1, lambda rows: torch.zeros(rows))


@pytest.mark.parametrize(
    "strategy", ["greedy", "sampling", "beam_search", "contrastive", "dola", "assisted", "token_tree"]
)
def test_no_strategy_writes_a_banned_phrase(strategy: str) -> None:
    model = spelling_models.model()
    more: dict[str, Any] = {
        "sampling": {"do_sample": True, "num_return_sequences": 3}, "beam_search": {"num_beams": 3},
        "contrastive": {"penalty_alpha": 0.5, "top_k": 4}, "assisted": {"drafters": [spelling_models.similar_model()]},
        "token_tree": {"drafters": [spelling_models.similar_model()]}, "dola": {"dola_layers": "low"},
    }.get(strategy, {})  # fmt: skip
    plain = run(model, strategy=strategy, **more).texts
    letters = sorted({pair for text in plain for pair in map("".join, itertools.pairwise(text)) if pair.isascii()})[:6]
    assert letters
    texts = run(model, strategy=strategy, banned_phrases=letters, **more).texts
    assert texts != plain
    assert not [pair for pair in letters for text in texts if pair.lower() in text.lower()]


def test_bias_by_word_equals_the_bias_of_its_spellings() -> None:
    model = spelling_models.model()
    ids = word_spellings(model, "cat", any_case=False)
    assert set(ids) >= {tuple(model.tokenizer.encode("cat")), tuple(model.tokenizer.encode(" cat"))}
    assert len(word_spellings(model, "cat", any_case=True)) > len(ids)
    expected = run(model, sequence_bias=[[list(one), 7.5] for one in ids])
    found = run(model, word_bias=[["cat", 7.5]])
    assert found.sequences == expected.sequences
    assert found.sequences != run(model).sequences


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"banned_phrases": "cat"}, "banned_phrases"),
        ({"banned_phrases": [""]}, "banned_phrases"),
        ({"banned_phrases": [3]}, "banned_phrases"),
        ({"word_bias": [["cat"]]}, "word_bias"),
        ({"word_bias": [["cat", "much"]]}, "word_bias"),
        ({"word_bias": [["cat", math.inf]]}, "word_bias"),
        ({"word_bias": [["cat", math.nan]]}, "word_bias"),
        ({"word_bias": [[" ", 1]]}, "word_bias"),
    ],
)
def test_invalid_words_are_refused(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError) as refused:
        run(spelling_models.model(), **settings)
    assert refused.value.parameter == name
