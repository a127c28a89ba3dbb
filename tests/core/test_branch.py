"""A run whose answer begins with given tokens continues like the run that generated them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import ParameterError, PromptError, PromptTooLongError, TokenizerMissingError
from decodescope.core.events import BeamStep, Finished, Prefilled, RunStarted, SequenceFinished, TokenChosen
from tests.core import tiny

NEW = 24
KINDS = ("gpt2", "llama", "qwen3", "mamba", "t5", "bart")


def run(model: core.LoadedModel, beginning: Any = (), new: int = NEW, **more: Any) -> core.Result:
    settings: dict[str, Any] = {"eos_token_id": None, **more.pop("settings", {})}
    store, prompt = more.pop("store", None), more.pop("prompt", tiny.prompt())
    config = GenerationConfig(max_new_tokens=new, **settings)
    return core.run(model, core.Request(prompt, config, beginning=beginning, **more), prefixes=store)


@pytest.mark.parametrize("kind", KINDS)
def test_branch_with_the_same_tokens_yields_the_same_text(kind: str) -> None:
    model = tiny.shared(kind)
    text = run(model).sequences[0]
    for place in (1, 7, NEW - 1):
        assert run(model, text[:place], NEW - place).sequences[0] == text[place:]


@pytest.mark.parametrize("kind", KINDS)
def test_branch_with_another_token_equals_a_fresh_run(kind: str) -> None:
    """A decoder gives the text of a fresh run whose prompt contains it, an encoder–decoder that of its module."""
    model = tiny.shared(kind)
    text = run(model).sequences[0]
    beginning = [*text[:5], (text[5] + 1) % 50 + 5]
    branch = run(model, beginning, 8).sequences[0]
    if not model.is_encoder_decoder:
        assert branch == run(model, (), 8, prompt=tiny.prompt() + beginning).sequences[0]
        return
    ids = [3, *beginning]
    for token in branch:
        with torch.inference_mode():
            logits = model.model(input_ids=torch.tensor([tiny.prompt()]), decoder_input_ids=torch.tensor([ids])).logits
        assert token == int(logits[0, -1].argmax())
        ids.append(token)


STRATEGIES: dict[str, dict[str, Any]] = {
    "beam_search": {"settings": {"num_beams": 3}},
    "diverse_beam_search": {"settings": {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5}},
    "prompt_lookup": {"settings": {"prompt_lookup_num_tokens": 4}},
    "assisted": {"settings": {"num_assistant_tokens": 3}},
    "token_tree": {"options": {"widths": "2 2"}},
    "early_exit": {"settings": {"assistant_early_exit": 2, "num_assistant_tokens": 3}},
    "contrastive": {"settings": {"penalty_alpha": 0.6, "top_k": 3}},
    "dola": {},
    "sampling": {"settings": {"top_k": 5}, "seed": 3},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_continues_from_a_branch(strategy: str) -> None:
    model, beginning = tiny.shared("llama"), tiny.prompt(6, seed=4)
    more = dict(STRATEGIES[strategy], strategy=strategy)
    if core.strategies.registry[strategy].takes_drafters:
        more["drafters"] = (tiny.make("llama", seed=1),)
    branch = run(model, beginning, 12, **more)
    fresh = run(model, (), 12, prompt=tiny.prompt() + beginning, **more)
    assert branch.sequences == fresh.sequences
    assert branch.scores == fresh.scores


@pytest.mark.parametrize("strategy", ["beam_search", "prompt_lookup", "assisted"])
def test_branch_of_an_encoder_decoder_continues_like_the_run(strategy: str) -> None:
    model = tiny.shared("t5")
    more = dict(STRATEGIES[strategy], strategy=strategy)
    if core.strategies.registry[strategy].takes_drafters:
        more["drafters"] = (tiny.make("t5", seed=1),)
    text = run(model, **more).sequences[0]
    if strategy == "beam_search":
        assert len(run(model, text[:7], 8, **more).sequences[0]) == 8
    else:
        assert run(model, text[:7], NEW - 7, **more).sequences[0] == text[7:]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3"])
def test_shared_beginning_is_reused_from_the_prefix_store(kind: str) -> None:
    model, store = tiny.shared(kind), core.PrefixStore()
    text = run(model, store=store).sequences[0]
    beginning = [*text[:9], 5]
    branch = run(model, beginning, store=store)
    read = next(event for event in branch.events if isinstance(event, Prefilled))
    assert (read.tokens, read.reused) == (12 + 10, 12 + 9)
    assert branch.sequences == run(model, beginning).sequences


def test_beginning_is_reported_and_not_counted_as_new() -> None:
    model = core.load("storyteller")
    result = run(model, " there lived", prompt="Once upon a time,", new=5)
    started, finished = result.events[0], result.events[-1]
    assert isinstance(started, RunStarted)
    assert [token.text for token in started.beginning] == [" there", " lived"]
    assert isinstance(finished, Finished)
    assert len(finished.sequences[0]) == 5
    assert finished.metrics.prompt_tokens == len(started.prompt) + 2
    assert [event.step for event in result.events if isinstance(event, TokenChosen)] == [0, 1, 2, 3, 4]


def test_beginning_accepts_text_ids_and_both_mixed() -> None:
    model = core.load("storyteller")
    whole = core.encode(model, "Once upon a time, there lived a fox")
    prompt = core.encode(model, "Once upon a time")
    for beginning in (", there lived a fox", [whole[len(prompt)], " there lived a fox"], whole[len(prompt) :]):
        result = run(model, beginning, prompt="Once upon a time", new=3)
        started = result.events[0]
        assert isinstance(started, RunStarted)
        assert [token.id for token in (*started.prompt, *started.beginning)] == whole, beginning


def test_incomplete_character_of_a_beginning_is_completed() -> None:
    model = core.load("storyteller")
    start, whole = core.encode(model, "A"), core.encode(model, "A🐢")
    turtle = whole[len(start) :]
    assert len(turtle) > 2, "it has to be several tokens"
    settings = {"sequence_bias": [[[turtle[-1]], 1000.0]], "num_beams": 1}
    for strategy in ("greedy", "beam_search"):
        wanted = {**settings, "num_beams": 2} if strategy == "beam_search" else settings
        result = run(model, turtle[:-1], 1, prompt="A", strategy=strategy, settings=wanted)
        started = result.events[0]
        assert isinstance(started, RunStarted)
        assert [token.text for token in started.beginning] == [""] * (len(turtle) - 1)
        assert result.texts[0] == "🐢", strategy


def test_a_stop_text_may_begin_before_the_branch() -> None:
    model = core.load("storyteller")
    text = run(model, prompt="Once upon a time", new=20).texts[0]
    ids = run(model, prompt="Once upon a time", new=20).sequences[0]
    straddling = model.tokenizer.decode(ids[4:8])
    assert straddling in text
    more: dict[str, Any] = {"prompt": "Once upon a time", "new": 10}
    greedy = run(model, ids[:6], settings={"stop_strings": [straddling]}, **more)
    ended = next(event for event in greedy.events if isinstance(event, SequenceFinished))
    assert (len(greedy.sequences[0]), ended.reason) == (2, "stop_string")
    beams = run(model, ids[:6], settings={"stop_strings": [straddling], "num_beams": 2}, **more)
    second = [event for event in beams.events if isinstance(event, BeamStep)][1]
    assert "stop_string" in {candidate.ended for candidate in second.candidates}


def test_length_rules_count_the_beginning_and_limits_do_not() -> None:
    model = tiny.shared("llama")
    settings = {"min_new_tokens": 6, "eos_token_id": 2, "sequence_bias": [[[2], 1000.0]]}
    assert len(run(model, settings=settings).sequences[0]) == 7
    assert len(run(model, tiny.prompt(4, seed=3), settings=settings).sequences[0]) == 3
    assert len(run(model, tiny.prompt(10, seed=3), settings=settings).sequences[0]) == 1
    guided = {"guidance_scale": 1.7}
    text = run(model, settings=guided).sequences[0]
    assert run(model, text[:5], NEW - 5, settings=guided).sequences[0] == text[5:]


def test_invalid_beginning_raises_a_clear_error() -> None:
    model = tiny.shared("llama")
    with pytest.raises(PromptTooLongError, match="The prompt has 272 tokens"):
        run(model, tiny.prompt(260))
    with pytest.raises(ParameterError, match="Token id 61 in the beginning"):
        run(model, [5, 61])
    with pytest.raises(PromptError, match="continuation is None"):
        run(model, [5, None])
    with pytest.raises(TokenizerMissingError):
        run(model, "words")


def test_script_of_a_branch_contains_the_beginning() -> None:
    config = {"max_new_tokens": 6}
    request = core.Request("Once upon a time,", config, strategy="greedy", beginning=(" there", 276))
    code = core.as_code(request, model="storyteller")
    assert "a forced beginning" in code
    scope: dict[str, Any] = {}
    exec(compile(code, "script", "exec"), scope)
    assert scope["result"].sequences == core.run(core.load("storyteller"), request).sequences


def test_memory_estimate_includes_the_beginning() -> None:
    model, config = tiny.shared("llama"), GenerationConfig(max_new_tokens=20)
    plain, branch = (core.estimate(model, core.Request(tiny.prompt(), config, beginning=b)) for b in ((), [5] * 30))
    assert branch.tokens - plain.tokens == 30
