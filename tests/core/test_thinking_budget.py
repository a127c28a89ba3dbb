"""Thinking budgets: texts against a plain loop over the model's logits, forced tokens in events, and refusals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import ParameterError, StrategyError
from decodescope.core.events import DraftRound, RunStarted, TokenChosen
from decodescope.core.thinking import ThinkingMark, find_thinking
from decodescope.core.thinking.budget import ThinkingState, ThinkingWalker, TokenizedMark
from tests.core import thinking_models

CHAT = [{"role": "user", "content": "cat"}]
LENGTH = 14


def ids_of(model: core.LoadedModel, text: str) -> list[int]:
    ids: list[int] = model.tokenizer.encode(text, add_special_tokens=False)
    return ids


@torch.no_grad()
def logits_after(model: core.LoadedModel, ids: Sequence[int]) -> torch.Tensor:
    return model.model(torch.tensor([list(ids)])).logits[0, -1].float().clone()


Choose = Callable[[torch.Tensor], int]


def plain_loop(
    model: core.LoadedModel, prompt: Sequence[int], choose: Choose, budget: int | None = None, message: str = "",
    extensions: int = 0, extension: str = "Wait", length: int = LENGTH, bias: float = 0.0,
) -> tuple[list[int], list[bool]]:  # fmt: skip
    """The new tokens and which of them were forced, step by step: the prompt ends inside thinking."""
    closing = ids_of(model, "</think>")
    opening = ids_of(model, "<think>")
    answer: list[int] = []
    forced: list[bool] = []
    inside, count, pending, just_ended, is_ending = True, 0, list[int](), False, False
    while len(answer) < length:
        if inside and budget is not None and count >= budget and not is_ending:
            is_ending = True
            pending = [*(ids_of(model, f"\n{message}\n") if message else ()), *closing]
        logits = logits_after(model, [*prompt, *answer])
        logits[closing[0]] += bias
        if pending:
            token, is_forced = pending.pop(0), True
        else:
            if just_ended:
                logits[closing[0]] = -math.inf
            token, is_forced = choose(logits), False
            if inside and token == closing[0] and extensions:
                token, *pending = ids_of(model, extension)
                is_forced, extensions = True, extensions - 1
        answer.append(token)
        forced.append(is_forced)
        if inside:
            count += 1
            if answer[-len(closing) :] == closing:
                inside, just_ended, is_ending = False, is_forced, False
        else:
            just_ended = just_ended and not model.tokenizer.decode([token]).strip()
            before = model.tokenizer.decode(answer[:-1])
            if token == opening[0] and not before.rpartition("\n")[2].strip().removesuffix("</think>"):
                inside = True
    return answer, forced


def best(logits: torch.Tensor) -> int:
    return int(logits.argmax())


def run(model: core.LoadedModel, seed: int = 0, **settings: Any) -> tuple[list[int], list[TokenChosen]]:
    strategy, drafters = settings.pop("strategy", None), settings.pop("drafters", ())
    options = {name: settings.pop(name) for name in [*settings] if name.startswith("thinking_")}
    config = {"max_new_tokens": LENGTH, "eos_token_id": None, **settings}
    request = core.Request(CHAT, config, strategy, options, seed=seed)
    events = list(core.stream(model, request, drafters=drafters))
    tokens = [event for event in events if isinstance(event, TokenChosen)]
    return [token.id for token in tokens], tokens


def near(model: core.LoadedModel, size: float = 0.05) -> core.LoadedModel:
    """A draft model that agrees often, but not always."""
    import copy

    network, generator = copy.deepcopy(model.model), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * parameter.std() * size)
    return core.wrap(network, model.tokenizer, name="near")


CASES: dict[str, dict[str, Any]] = {
    "no thinking": {"budget": 0},
    "after three": {"budget": 3},
    "with a sentence": {"budget": 4, "message": "abc red"},
    "extended": {"extensions": 2},
    "extended by several tokens": {"extensions": 1, "extension": "cat dog"},
    "extended and limited": {"budget": 6, "extensions": 3},
}


def _options(
    budget: int | None = None, message: str = "", extensions: int = 0, extension: str = "Wait"
) -> dict[str, Any]:
    given = {"thinking_budget": budget, "thinking_message": message or None,
             "thinking_extensions": extensions or None, "thinking_extension_text": extension}  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _bias(model: core.LoadedModel, value: float) -> dict[str, Any]:
    """Settings with which the model likes to end its thinking."""
    return {"sequence_bias": [[ids_of(model, "</think>"), value]]}


@pytest.mark.parametrize(
    ("name", "are_tokens"),
    [
        (name, are_tokens)
        for name, case in CASES.items()
        for are_tokens in (True, False)
        if are_tokens or not case.get("extensions")
    ],  # others are refused, as below
)
def test_greedy_text_with_budget_equals_a_plain_loop(name: str, are_tokens: bool) -> None:
    case = CASES[name]
    model = thinking_models.model(3, are_tokens=are_tokens)
    prompt = core.encode(model, CHAT)
    bias = 2.5 if case.get("extensions") else 0.0
    expected, forced = plain_loop(model, prompt, best, bias=bias, **case)
    assert any(forced)
    found, tokens = run(model, **_options(**case), **(_bias(model, bias) if bias else {}))
    assert found == expected
    assert [token.origin == "forced" for token in tokens] == forced


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("strategy", ["assisted", "prompt_lookup", "token_tree", "lookahead"])
def test_drafts_with_budget_write_the_greedy_text(name: str, strategy: str) -> None:
    model = thinking_models.model(5)
    options = _options(**CASES[name]) | _bias(model, 2.5)
    expected, plain = run(model, **options)
    more: dict[str, Any] = {"strategy": strategy}
    if strategy in ("assisted", "token_tree"):
        more["drafters"] = [near(model)]
    if strategy == "prompt_lookup":
        more["prompt_lookup_num_tokens"] = 3
    found, tokens = run(model, **options, **more)
    assert found == expected
    assert [token.origin == "forced" for token in tokens] == [token.origin == "forced" for token in plain]


def test_forced_tokens_do_not_count_as_accepted_drafts() -> None:
    model = thinking_models.model(3)
    request = core.Request(CHAT, {"max_new_tokens": 6, "eos_token_id": None}, "assisted",
                           {"thinking_budget": 1, "thinking_message": "abc"})  # fmt: skip
    events = list(core.stream(model, request, drafters=[model]))
    forced = sum(event.origin == "forced" for event in events if isinstance(event, TokenChosen))
    accepted = sum(len(event.accepted) for event in events if isinstance(event, DraftRound))
    metrics = core.run(model, request, drafters=[model]).metrics
    assert forced == 1 + len(ids_of(model, "\nabc\n"))
    assert accepted > 0
    assert metrics.acceptance_rate in (None, 1.0)


def test_forced_token_keeps_the_probability_that_the_model_gave_it() -> None:
    model = thinking_models.model(3)
    _found, tokens = run(model, thinking_budget=2)
    prompt = core.encode(model, CHAT)
    for place, token in enumerate(tokens):
        logs = torch.log_softmax(logits_after(model, [*prompt, *(one.id for one in tokens[:place])]).double(), -1)
        assert token.raw_log_probability == pytest.approx(float(logs[token.id]), abs=1e-4)
        if token.origin == "forced":
            assert token.probability == 1.0
            assert "not chosen" in core.explain_token(token)
    assert [token.origin for token in tokens[:4]] == ["target", "target", "forced", "target"]


@pytest.mark.parametrize("strategy", ["beam_search", "beam_sampling", "diverse_beam_search"])
def test_beams_with_budget_end_thinking_and_do_not_count_the_forced_token(strategy: str) -> None:
    model = thinking_models.model(3)
    settings: dict[str, Any] = {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.0}
    settings |= {"do_sample": True} if strategy == "beam_sampling" else {}
    settings |= {"num_beam_groups": 2, "diversity_penalty": 0.5} if strategy == "diverse_beam_search" else {}
    request = core.Request(CHAT, {"max_new_tokens": 6, "eos_token_id": None, **settings}, strategy,
                           {"thinking_budget": 2}, seed=1)  # fmt: skip
    result = core.run(model, request)
    (closing,) = ids_of(model, "</think>")
    prompt = core.encode(model, CHAT)
    for sequence, score in zip(result.sequences, result.scores or (), strict=True):
        assert sequence[2] == closing or closing in sequence[:2]
        logs = [torch.log_softmax(logits_after(model, [*prompt, *sequence[:place]]).double(), -1)[token]
                for place, token in enumerate(sequence) if place != 2 or closing in sequence[:2]]  # fmt: skip
        if strategy == "beam_search":
            assert score == pytest.approx(float(sum(logs)), abs=1e-3)


@torch.no_grad()
def test_sampled_text_with_extension_has_the_distribution_of_replacing_afterwards() -> None:
    model, temperature, bias = thinking_models.model(5), 0.7, 3.0
    prompt = core.encode(model, CHAT)
    (closing,) = ids_of(model, "</think>")
    first, second, *_ = ids_of(model, "Wait")
    raised = torch.zeros(model.vocabulary).index_fill(0, torch.tensor([closing]), bias)
    p = torch.softmax((logits_after(model, prompt) + raised).double() / temperature, -1)
    texts = torch.tensor([[*prompt, token] for token in range(len(p))])
    q = torch.softmax((model.model(texts).logits[:, -1] + raised).double() / temperature, -1)  # [first, second]
    q[:, first] += q[:, closing]
    q[:, closing] = 0.0
    exact = p @ q - p[closing] * q[closing]
    exact[second] += p[closing]  # after a forced first token of the extension comes its second one
    assert p[closing] > 0.05

    settings = {"do_sample": True, "temperature": temperature, "top_k": 0, "max_new_tokens": 2,
                **_options(extensions=1), **_bias(model, bias)}  # fmt: skip
    plain = [token for seed in range(2) for token in run(
        model, num_return_sequences=600, seed=1000 * seed, **settings)[1]]  # fmt: skip
    drafted = [token for seed in range(150) for token in run(
        model, seed=seed, strategy="assisted", drafters=[near(model)], **settings)[1]]  # fmt: skip
    for tokens in (plain, drafted):
        draws = len(tokens) // 2
        counts = Counter(token.id for token in tokens if token.step == 1)
        assert closing not in counts
        assert any(token.origin == "forced" for token in tokens)
        for token, share in enumerate(exact.tolist()):
            assert abs(counts[token] / draws - share) < 5 * math.sqrt(share * (1 - share) / draws) + 3 / draws, token


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"num_beams": 2, "thinking_extensions": 1}, "several continuations"),
        ({"penalty_alpha": 0.5, "top_k": 3, "thinking_extensions": 1}, "several continuations"),
        ({"thinking_budget": 3, "thinking_marks": "<a>"}, "not two words"),
        ({"thinking_budget": -1}, "out of range"),
    ],
)
def test_setting_that_cannot_be_right_is_refused_by_name(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises((ParameterError, StrategyError), match=cause):
        run(thinking_models.model(3), **settings)


def test_budget_is_refused_with_a_grammar_and_without_marks() -> None:
    model = thinking_models.model(3)
    with pytest.raises(ParameterError, match="The grammar holds from the first token"):
        core.run(model, core.Request(CHAT, {}, options={"thinking_budget": 1, "grammar": {"regex": "a+"}}))
    with pytest.raises(ParameterError, match="The model has no thinking"):
        core.run(core.load("storyteller"), core.Request("Once", {}, options={"thinking_budget": 1}))
    with pytest.raises(ParameterError, match="no token of its own"):
        run(thinking_models.model(3, are_tokens=False), thinking_extensions=1)


def test_named_marks_give_any_model_a_budget() -> None:
    options = {"thinking_budget": 3, "thinking_marks": "<think> </think>"}
    request = core.Request("<think>", {"max_new_tokens": 12}, options=options)
    result = core.run(core.load("storyteller"), request)
    assert "</think>" in result.texts[0]


MARKS = [TokenizedMark(ThinkingMark("<think>", "</think>"), (7, 8))]


class _Pieces(dict[int, str]):
    special: frozenset[int] = frozenset()


PIECES = _Pieces({1: "a", 2: "\n", 5: "<think>", 7: "</", 8: "think>", 9: "Hm"})


@pytest.mark.parametrize(
    ("text", "pending", "count"),
    [
        ([1, 1, 1], (), 0),
        ([5], (), 0),
        ([5, 1], (), 1),
        ([5, 1, 1], (9, 7, 8), 2),
        ([5, 1, 7], (8,), 2),  # the model had begun to close it
        ([5, 1, 1, 9, 7], (8,), 4),
        ([5, 1, 1, 9, 7, 8], (), 5),
        ([5, 1, 7, 8], (), 3),
        ([5, 1, 1, 9, 7, 8, 2, 5], (9, 7, 8), 5),  # nothing is left for a second one
        ([1, 5, 1, 1], (), 0),  # inside a sentence, the mark is only mentioned
    ],
)
def test_walker_says_what_must_follow(text: list[int], pending: tuple[int, ...], count: int) -> None:
    walker = ThinkingWalker(MARKS, PIECES, 2, (9,))
    state = walker.state(text)
    assert (state.pending, state.length) == (pending, count)
    for length in range(len(text)):  # in any order, and after other texts
        walker.state([*text[:length], 1, 2])
    assert walker.state(text) == state


def test_walker_starts_inside_thinking_that_the_prompt_opened() -> None:
    walker = ThinkingWalker(MARKS, PIECES, 0, start=ThinkingState(0))
    assert walker.state([]).pending == (7, 8)
    assert walker.state([7, 8]).is_closed_by_force
    assert walker.state([7, 8, 2]).is_closed_by_force
    assert not walker.state([7, 8, 1]).is_closed_by_force


def test_branch_inside_thinking_counts_what_it_begins_with() -> None:
    model = thinking_models.model(3)
    whole, _ = run(model, thinking_budget=4)
    request = core.Request(CHAT, {"max_new_tokens": LENGTH - 2, "eos_token_id": None}, options={"thinking_budget": 4},
                           beginning=whole[:2])  # fmt: skip
    events = list(core.stream(model, request))
    tokens = [event for event in events if isinstance(event, TokenChosen)]
    assert [token.id for token in tokens] == whole[2:]
    started = next(event for event in events if isinstance(event, RunStarted))
    assert find_thinking(started, tokens).ranges[0] == (0, 3)
