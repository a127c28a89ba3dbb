"""Words to avoid and biases by word: every division of a word into tokens, compared with brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.processors.word_search import PhraseBan, fold, word_spellings
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


def kobold_loop(model: core.LoadedModel, prompt: list[int], phrases: list[str], length: int) -> list[int]:
    """KoboldCpp's rule, greedily and without caches: go back to the phrase's first token and forbid it there."""
    data = model.token_bytes
    assert data is not None
    wanted = [fold(phrase.encode()) for phrase in phrases]
    forbidden: dict[tuple[int, ...], set[int]] = {}
    answer: list[int] = []

    def first_token_of_phrase(text: list[int]) -> int | None:
        whole = fold(b"".join(data[token] or b"" for token in text))
        start = max(whole.rfind(phrase) for phrase in wanted)
        sizes = itertools.accumulate(len(data[token] or b"") for token in text)
        return next((place for place, size in enumerate(sizes) if size > start), None) if start >= 0 else None

    while len(answer) < length:
        with torch.no_grad():
            logits = model.model(torch.tensor([[*prompt, *answer]])).logits[0, -1].float().clone()
        banned = {token for token, text in enumerate(data) if text and any(phrase in fold(text) for phrase in wanted)}
        banned |= forbidden.get(tuple(answer), set())
        logits[list(banned)] = -math.inf
        answer.append(int(logits.argmax()))
        if (place := first_token_of_phrase(answer)) is not None:
            forbidden.setdefault(tuple(answer[:place]), set()).add(answer[place])
            del answer[place:]
    return answer


@pytest.mark.parametrize("seed", [2, 3, 6])
def test_stepping_back_writes_the_text_of_a_plain_loop(seed: int) -> None:
    model = spelling_models.model(seed=seed)
    prompt = core.encode(model, PROMPT)
    plain = run(model).texts[0]
    windows = (plain[place : place + 3] for place in range(len(plain) - 2))
    phrases = [*dict.fromkeys(window for window in windows if window.isascii() and window.isprintable())][:4]
    expected = kobold_loop(model, prompt, phrases, 24)
    options = {"banned_phrases": phrases, "banned_phrases_step_back": True}
    request = core.Request(PROMPT, {"max_new_tokens": 24, "eos_token_id": None}, options=options)
    events = list(core.stream(model, request))
    tokens = [event for event in events if isinstance(event, core.events.TokenChosen)]
    assert [token.id for token in tokens] == expected
    assert [token.step for token in tokens] == list(range(24))
    withdrawn = [phrase for token in tokens for phrase in token.withdrawn]
    assert withdrawn
    assert all(phrase.phrase in "".join(one.text for one in phrase.tokens).lower() for phrase in withdrawn)
    first = next(token for token in tokens if token.withdrawn)
    assert "was withdrawn" in core.explain_token(first)
    assert first.withdrawn[0].tokens[0].id != first.id
    finished = next(event for event in events if isinstance(event, core.events.Finished))
    assert not [phrase for phrase in phrases if phrase.lower() in finished.texts[0].lower()]


def test_stepping_back_ends_at_limits_and_stop_strings() -> None:
    model = spelling_models.model(seed=1)
    plain = run(model).texts[0]
    options: dict[str, Any] = {"banned_phrases": [plain[2:6]], "banned_phrases_step_back": True}
    whole = run(model, **options)
    for length in (1, 2, 3, 5):
        assert run(model, max_new_tokens=length, **options).texts[0] != ""
    stop = whole.texts[0][9:11]
    stopped = run(model, stop_strings=[stop], **options).texts[0]
    assert whole.texts[0].startswith(stopped)
    assert stop in stopped


def test_stepping_back_samples_repeatably_and_never_writes_the_phrase() -> None:
    model = spelling_models.model(seed=2)
    first = run(model, do_sample=True, seed=3).texts[0]
    options: dict[str, Any] = {"banned_phrases": [first[:3]], "banned_phrases_step_back": True, "do_sample": True}
    again = run(model, seed=3, **options)
    assert first[:3].lower() not in again.texts[0].lower()
    assert run(model, seed=3, **options).sequences == again.sequences


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"do_sample": True, "num_return_sequences": 2},
        {"penalty_alpha": 0.5, "top_k": 3},
        {"prompt_lookup_num_tokens": 3},
        {"do_sample": True, "mirostat_tau": 5.0},
    ],
)
def test_stepping_back_is_refused_where_it_cannot_be_right(settings: dict[str, Any]) -> None:
    options: dict[str, Any] = {"banned_phrases": ["abc"], "banned_phrases_step_back": True}
    with pytest.raises(ParameterError) as refused:
        core.run(spelling_models.model(), core.Request(PROMPT, {**settings, **options}))
    assert refused.value.parameter == "banned_phrases_step_back"
