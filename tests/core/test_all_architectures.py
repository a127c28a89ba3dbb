"""Every architecture: the text equals that of `generate`, or the program says why it is not supported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.continuation_probe import memory_kind
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import Event, Notice, SequenceFinished
from tests.core import tiny, zoo
from tests.long import every

NEW = 12
ODD = (
    "openai-gpt", "recurrent_gemma", "moshi", "gpt_neo", "llama4_text", "fsmt", "lfm2", "deepseek_v32", "roberta",
    "switch_transformers", "gemma4_text", "gemma3n_text", "minimax", "cpmant",
)  # fmt: skip
"""Each is odd in a way of its own: these were wrong, or raised something raw."""
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beam_search": {"num_beams": 3},
    "prompt_lookup": {"prompt_lookup_num_tokens": 4},
    "assisted": {"num_assistant_tokens": 3},
    "token_tree": {"num_assistant_tokens": 3},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 3},
    "dola": {},
    "early_exit": {},
}


def settings(**more: Any) -> GenerationConfig:
    return GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, **{"num_beams": 1, "do_sample": False, **more})


def cells(model: core.LoadedModel, every: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(strategy, cache, its options): all strategies on one cache, all caches with one strategy, or all with all."""
    for strategy in STRATEGIES:
        for cache in core.caches.registry:
            if every or cache == "dynamic" or strategy in ("greedy", "prompt_lookup"):
                yield strategy, cache, {}
    if model.is_encoder_decoder:
        yield "greedy", "encoder_decoder", {"self": "static"}


def written(model: core.LoadedModel, strategy: str, cache: str, options: dict[str, Any]) -> list[int] | None:
    """Return the text of the run, or None if it is refused; any other exception fails the test."""
    entry = core.strategies.registry[strategy]
    drafters = (model,) if entry.takes_drafters else ()
    chosen = {"widths": "2 2"} if strategy == "token_tree" else {}
    config = settings(**STRATEGIES[strategy])
    request = core.Request(zoo.prompt(20), config, strategy, chosen, cache, options, drafters=drafters)
    try:
        return core.run(model, request).sequences[0]
    except DecodescopeError:
        return None


def check(kind: str, every: bool) -> None:
    """All cells of one architecture."""
    model, ids = zoo.make(kind), zoo.prompt(20)
    greedy = tiny.reference(model, ids, settings())[0]
    beams = beams_of(kind, model, ids)
    for strategy, cache, options in cells(model, every):
        found = written(model, strategy, cache, options)
        if found is None or not core.caches.registry[cache].exact or strategy in ("contrastive", "dola"):
            continue
        if wanted := (beams if strategy == "beam_search" else greedy):
            assert found == wanted, (kind, strategy, cache, options)


def beams_of(kind: str, model: core.LoadedModel, ids: list[int]) -> list[int]:
    """Return the text of `generate` with three beams; empty if it fails, or if all texts have equal scores."""
    if kind == "xlm":  # the random model gives every token one score
        return []
    try:
        return tiny.reference(model, ids, settings(num_beams=3))[0]
    except ValueError:
        return []


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", every(4, ODD))
def test_unusual_architectures_equal_generate(kind: str) -> None:
    check(kind, every=False)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", zoo.names())
def test_all_architectures_equal_generate(kind: str) -> None:
    try:
        zoo.make(kind)
        tiny.reference(zoo.make(kind), zoo.prompt(20), settings())
    except Exception as error:
        pytest.skip(f"no small one, or `generate` itself fails: {type(error).__name__}")
    check(kind, every=True)


@pytest.mark.parametrize(
    ("kind", "memory"), [("openai-gpt", "none"), ("recurrent_gemma", "inside"), ("moshi", "windows"), ("opt", "kept")]
)
def test_memory_kind_is_detected(kind: str, memory: str) -> None:
    assert memory_kind(zoo.make(kind)) == memory


@pytest.mark.parametrize("kind", tiny.ALL)
def test_proven_architectures_pass_the_memory_probe(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decodescope.core.caches.tensors.continuation_probe.PROVEN_ARCHITECTURES", frozenset())
    assert memory_kind(tiny.make(kind)) == "kept"


def test_model_without_a_cache_refuses_static_cache_and_drafts() -> None:
    model, registry = zoo.make("openai-gpt"), core.caches.registry
    assert registry["dynamic"].unsupported_reason(model) is None
    assert "keeps no cache between tokens" in (registry["static"].unsupported_reason(model) or "")
    drafting = core.strategies.registry["prompt_lookup"]
    assert registry["dynamic"].unsupported_reason(model, drafting.needs) or drafting.unsupported_reason(model)


@pytest.mark.parametrize("kind", every(2, ["mpt", "led", "prophetnet", "roberta", "xlm", "xlnet"]))
def test_a_text_ends_with_its_context(kind: str) -> None:
    model = zoo.make(kind)
    length = 10 if model.is_encoder_decoder else 240
    config = GenerationConfig(max_new_tokens=300 if model.context else 20, num_beams=1, eos_token_id=60, pad_token_id=0)
    events = core.run(model, core.Request([5] * length, config, "greedy")).events
    ended = [event for event in events if isinstance(event, SequenceFinished)]
    assert [event.reason for event in ended] == ["context" if model.context else "length"]


def test_deviations_from_the_request_cause_notices() -> None:
    reported = of_kind(core.run(zoo.make("openai-gpt"), core.Request(zoo.prompt(5), settings())).events)
    assert reported["read_anew"].startswith("tiny-openai-gpt keeps no cache between tokens")
    model = tiny.make("llama")
    model.model.generation_config.cache_implementation = "static"
    ids = tiny.prompt()
    assert (
        "Select “Static” to use it" in of_kind(core.run(model, core.Request(ids, settings())).events)["setting_ignored"]
    )
    assert of_kind(core.run(model, core.Request(ids, settings(), cache="static")).events) == {}


def test_drafts_in_bfloat16_cause_a_notice() -> None:
    for dtype, reported in ((torch.bfloat16, True), (torch.float32, False)):
        model = tiny.make("llama")
        model.model.to(dtype)
        request = core.Request(tiny.prompt(), settings(prompt_lookup_num_tokens=3))
        assert ("half_precision" in of_kind(core.run(model, request).events)) is reported
        assert of_kind(core.run(model, core.Request(tiny.prompt(), settings())).events) == {}


@pytest.mark.parametrize("kind", ["opt", "falcon", "mixtral", "olmo", "deepseek_v3", "mpt"])
def test_early_exit_finds_the_layers(kind: str) -> None:
    model, config = zoo.make(kind), settings(assistant_early_exit=2, num_assistant_tokens=3)
    result = core.run(model, core.Request(zoo.prompt(20), config, "early_exit"))
    assert result.sequences == tiny.reference(model, zoo.prompt(20), settings())
    assert result.metrics.acceptance_rate is not None


@pytest.mark.parametrize(("kind", "words"), [("gpt_neo", "applies its windows to"), ("gpt2", "trained without")])
def test_sliding_window_refusals_name_the_reason(kind: str, words: str) -> None:
    assert words in (core.caches.registry["sliding_window"].unsupported_reason(zoo.make(kind)) or "")


@pytest.mark.parametrize("kind", ["laguna", "mellum"])
def test_a_sink_turns_keys_by_the_table_of_their_layers(kind: str) -> None:
    model = zoo.make(kind)
    if "full attention in every layer" in (core.caches.registry["sink"].unsupported_reason(model) or ""):
        pytest.skip("this one has windows")
    runs = [core.run(model, core.Request(zoo.prompt(20), settings(), cache=cache)) for cache in ("sink", "dynamic")]
    assert runs[0].sequences == runs[1].sequences


def of_kind(events: list[Event]) -> dict[str, str]:
    """Messages of notices by their kinds."""
    return {event.kind: event.message for event in events if isinstance(event, Notice)}
