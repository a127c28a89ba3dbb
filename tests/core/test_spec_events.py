"""Events of speculation: rounds, nodes, tokens, metrics; and caches that contain the text only."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.decoding.speculation import speculation_loop as frame
from decodescope.core.decoding.speculation import tree_passes
from decodescope.core.decoding.speculation.speculation_factory import parse_widths
from decodescope.core.errors import ParameterError
from decodescope.core.events import CacheMeasured, DraftRound, Event, Finished, SequenceFinished, TokenChosen
from decodescope.core.explain.draft_rounds import explain_draft, explain_round
from tests.core import tiny
from tests.core.spec_models import LENGTH, chosen_tokens, config, greedy, rounds, similar_model

FIXED = {"schedule": "constant"}


def _run(way: str = "assisted", kind: str = "llama", **more: Any) -> Any:
    settings = more.pop("settings", {})
    more.setdefault("options", {"widths": "1 2 2 1"} if way == "token_tree" else FIXED)
    more.setdefault("drafters", [similar_model(kind)] if way in ("assisted", "token_tree") else [])
    return core.run(tiny.shared(kind), core.Request(tiny.prompt(), config(**settings), way, **more))


@pytest.mark.parametrize("samples", [False, True])
@pytest.mark.parametrize("way", ["assisted", "token_tree"])
def test_rounds_account_for_every_token(way: str, samples: bool) -> None:
    result = _run(way, settings={"do_sample": samples, "temperature": 1.5})
    text: list[int] = []
    for event in result.events:
        if isinstance(event, DraftRound):
            nodes = {node.node: node for node in event.nodes}
            assert event.step == len(text)
            promised = [nodes[number].id for number in event.accepted]
            promised += [event.extra_id] if event.extra_kind != "none" else []
        elif isinstance(event, TokenChosen):
            text.append(event.id)
            if event.origin != "target":
                assert promised.pop(0) == event.id
    assert text == result.sequences[0]
    assert not promised


@pytest.mark.parametrize("way", ["assisted", "token_tree"])
def test_nodes_form_a_tree_with_fates(way: str) -> None:
    for event in rounds(_run(way)):
        nodes = {node.node: node for node in event.nodes}
        assert list(nodes) == list(range(1, len(nodes) + 1))
        for node in event.nodes:
            assert node.parent < node.node
            assert node.depth == (nodes[node.parent].depth + 1 if node.parent else 1)
            assert (node.fate == "accepted") == (node.node in event.accepted)
            assert 0 <= node.target_probability <= 1
            assert 0 < node.draft_probability <= 1
            reached = node.parent == 0 or nodes[node.parent].fate == "accepted"
            assert node.fate != "unreached" or not reached or event.extra_kind == "none"
        path = [nodes[number] for number in event.accepted]
        assert [node.parent for node in path] == [0, *event.accepted[:-1]][: len(path)]


def test_acceptance_follows_ratio_and_random_number() -> None:
    decided = 0
    for event in rounds(_run("token_tree", settings={"do_sample": True, "temperature": 1.5})):
        for node in event.nodes:
            if node.ratio is None or node.die is None:
                assert node.fate == "unreached"
                continue
            decided += 1
            assert 0 <= node.ratio <= 1
            assert 0 <= node.die < 1
            assert (node.fate == "accepted") == (node.die < node.ratio)
    assert decided > 10


def test_tokens_have_the_statistics_of_the_target() -> None:
    """The same probabilities, alternatives and funnel as plain decoding gives."""
    settings = {"repetition_penalty": 1.2}
    plain = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config(**settings), "greedy", top_n=4))
    ours = _run("token_tree", settings=settings, top_n=4)
    for expected, found in zip(chosen_tokens(plain), chosen_tokens(ours), strict=True):
        assert found.id == expected.id
        assert found.probability == pytest.approx(expected.probability, abs=1e-4)
        assert [item.id for item in found.alternatives] == [item.id for item in expected.alternatives]
        assert [stage.name for stage in found.funnel] == [stage.name for stage in expected.funnel]
        assert found.rank == expected.rank


def test_origins_name_draft_correction_and_bonus() -> None:
    origins = [event.origin for event in chosen_tokens(_run())]
    assert origins[0] == "target"
    assert set(origins) == {"target", "draft", "correction", "bonus"}


def test_metrics_of_a_speculative_run() -> None:
    result = _run()
    figures, found = result.metrics, rounds(result)
    accepted = sum(len(event.accepted) for event in found)
    refused = sum(event.extra_kind == "correction" for event in found)
    assert figures.acceptance_rate == pytest.approx(accepted / (accepted + refused))
    assert figures.target_passes == len(found) + 1
    assert figures.tokens_per_target_pass == pytest.approx(LENGTH / (len(found) + 1))
    assert figures.draft_seconds == pytest.approx(sum(event.draft_seconds for event in found))
    assert figures.verify_seconds == pytest.approx(sum(event.verify_seconds for event in found))
    assert figures.overhead_seconds is not None
    assert figures.predicted_speedup is not None
    assert figures.predicted_speedup > 0


@pytest.mark.parametrize("top_n", [0, 5])
def test_a_stop_string_within_a_round_ends_the_text(top_n: int) -> None:
    model = core.load("storyteller")
    prompt, settings = "Once upon a time there was a", {"max_new_tokens": 40, "stop_strings": ["e"]}
    plain = core.run(model, core.Request(prompt, GenerationConfig(**settings), "greedy"))
    request = core.Request(prompt, GenerationConfig(**settings), "early_exit", FIXED, top_n=top_n)
    result = core.run(model, request)
    assert result.texts == plain.texts
    finished = next(event for event in result.events if isinstance(event, SequenceFinished))
    assert finished.reason == "stop_string"


def _cache_of(kind: str, length: int) -> list[torch.Tensor]:
    """Keys of plain decoding when the text has `length` tokens in all; the last one is not in the cache."""
    model = tiny.shared(kind)
    ids = [*tiny.prompt(), *greedy(model)][: length - 1]
    with torch.inference_mode():
        from transformers import DynamicCache

        cache = DynamicCache()
        model.model(torch.tensor([ids]), **{model.cache_name: cache}, use_cache=True)
    return [layer.keys for layer in cache.layers]


def _record_speculations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The `Speculation` objects that runs make."""
    from decodescope.core.decoding.speculation import speculation_factory

    made: list[Any] = []

    class RecordedSpeculation(speculation_factory.Speculation):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            made.append(self)

    monkeypatch.setattr(speculation_factory, "Speculation", RecordedSpeculation)
    return made


def _assert_holds_the_text(speculation: Any, kind: str) -> None:
    length = len(speculation.run.start_ids) + len(speculation.sequence.ids)
    expected = _cache_of(kind, length)
    layers = speculation.run.forward.cache.layers
    for layer, keys in zip(layers, expected, strict=True):
        assert layer.keys.shape == keys.shape
        assert torch.allclose(layer.keys, keys, atol=1e-3)
        assert layer.keys.untyped_storage().nbytes() == layer.keys.numel() * 4
    for drafter in speculation.drafters:
        assert drafter.reader.length <= length - 1
        assert drafter.reader.extra == 0
        forward = getattr(drafter.reader, "forward", None)  # passes through arrays keep rows of their own
        for layer in forward.cache.layers if forward is not None else ():
            assert layer.keys.shape[-2] == drafter.reader.length


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma3"])
@pytest.mark.parametrize("way", ["assisted", "token_tree"])
def test_cache_contains_only_the_text_at_the_end(monkeypatch: pytest.MonkeyPatch, way: str, kind: str) -> None:
    made = _record_speculations(monkeypatch)
    result = _run(way, kind)
    _assert_holds_the_text(made[0], kind)
    measured = [event for event in result.events if isinstance(event, CacheMeasured)][-1]
    assert measured.tokens == len(tiny.prompt()) + LENGTH - 1
    assert measured.bytes == sum(2 * keys.numel() * 4 for keys in _cache_of(kind, measured.tokens + 1))


@pytest.mark.parametrize("event_number", [5, 9, 15, 16, 17, 23])
def test_cache_contains_only_the_text_when_closed_in_mid_round(
    monkeypatch: pytest.MonkeyPatch, event_number: int
) -> None:
    made = _record_speculations(monkeypatch)
    request = core.Request(
        tiny.prompt(), config(), "token_tree", {"widths": "1 2 2 1"}, drafters=[similar_model("llama")]
    )
    events = core.stream(tiny.shared("llama"), request)
    for _ in range(event_number):
        next(events)
    events.close()  # type: ignore[attr-defined]
    _assert_holds_the_text(made[0], "llama")


@pytest.mark.parametrize("way", ["assisted", "token_tree", "early_exit", "prompt_lookup"])
def test_stopping_in_mid_round_leaves_a_consistent_run(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    made, cancel, events = _record_speculations(monkeypatch), threading.Event(), list[Event]()
    drafters = [similar_model("llama")] if way in ("assisted", "token_tree") else []
    options = {"widths": "1 2 1"} if way == "token_tree" else FIXED
    request = core.Request(tiny.prompt(), config(), way, options, drafters=drafters)
    for event in core.stream(tiny.shared("llama"), request, cancel):
        events.append(event)
        if isinstance(event, DraftRound):
            cancel.set()
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == "stopped"
    written = [event.id for event in events if isinstance(event, TokenChosen)]
    assert list(finished.sequences[0]) == written == greedy(tiny.shared("llama"))[: len(written)]
    _assert_holds_the_text_of_lookup(made[0]) if way == "prompt_lookup" else _assert_holds_the_text(made[0], "llama")


def _assert_holds_the_text_of_lookup(speculation: Any) -> None:
    assert speculation.target.passes.length == len(speculation.run.start_ids) + len(speculation.sequence.ids) - 1


def test_cancel_while_drafting_emits_no_more_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    made, cancel = _record_speculations(monkeypatch), threading.Event()
    request = core.Request(tiny.prompt(), config(), "assisted", FIXED, drafters=[similar_model("llama")])
    events = core.stream(tiny.shared("llama"), request, cancel)
    assert any(isinstance(event, TokenChosen) for event in events)
    made[0].drafters[0]._is_cancelled = lambda: cancel.set() or True
    rest = list(events)
    assert not [event for event in rest if isinstance(event, (TokenChosen, DraftRound))]
    assert isinstance(rest[-1], Finished)
    _assert_holds_the_text(made[0], "llama")


def test_the_verifier_and_children_that_are_not_lossless_are_refused() -> None:
    cases: list[tuple[str, dict[str, Any], bool]] = [
        ("assisted", {"verifier": "greedy"}, True),
        ("assisted", {"verifier": "sampling"}, False),
        ("token_tree", {"children": "likeliest"}, True),
        ("token_tree", {"widths": "1 0 2"}, False),
        ("token_tree", {"widths": "many"}, False),
        ("token_tree", {"widths": [9, 9, 9]}, False),
    ]
    for way, options, samples in cases:
        with pytest.raises(ParameterError):
            _run(way, options=options, settings={"do_sample": samples})


def test_widths_are_read_from_text_and_lists() -> None:
    assert parse_widths("1 1 3 1 1") == parse_widths([1, 1, 3, 1, 1]) == parse_widths("⟨1,1,3,1,1⟩") == (1, 1, 3, 1, 1)
    assert parse_widths(None) == parse_widths("") == ()


@pytest.mark.parametrize("way", ["assisted", "token_tree", "early_exit", "prompt_lookup"])
def test_same_seed_gives_the_same_text_with_any_clock(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text depends neither on the clock nor on earlier runs, although draft lengths shift the random draws."""
    auto: dict[str, Any] = {"options": {}, "settings": {"do_sample": True, "temperature": 1.5}}
    texts = [_run(way, **auto, seed=seed).sequences[0] for seed in (1, 1, 2)]
    clock = itertools.count()
    monkeypatch.setattr(tree_passes, "pricing_clock", lambda _device: lambda: float(next(clock) ** 2 % 7919))
    monkeypatch.setattr(frame, "pricing_clock", tree_passes.pricing_clock)
    texts.append(_run(way, **auto, seed=1).sequences[0])
    assert texts[0] == texts[1] == texts[3] != texts[2]


def test_rounds_and_nodes_are_explained() -> None:
    result = _run("token_tree", settings={"do_sample": True, "temperature": 1.5})
    for event in rounds(result):
        words = explain_round(event)
        assert str(len(event.nodes)) in words
        for node in event.nodes:
            sentence = explain_draft(node, event)
            assert "drafter gave" in sentence
            if node.ratio is not None and node.ratio < 1:
                assert f"{node.ratio:.2f}" in sentence
                assert ("was accepted" in sentence) == (node.fate == "accepted")
    greedy_round = rounds(_run("token_tree"))[0]
    assert any("model alone would choose" in explain_draft(node, greedy_round) for node in greedy_round.nodes)


def test_node_proposed_by_several_drafters_names_all() -> None:
    model = tiny.shared("llama")
    twins = _run("assisted", drafters=[model, model])
    assert {node.proposers for event in rounds(twins) for node in event.nodes} == {(0, 1)}
    alone = _run("assisted", drafters=[model])
    assert {node.proposers for event in rounds(alone) for node in event.nodes} == {()}
    mixed = _run("token_tree", drafters=[similar_model("llama"), similar_model("llama", 5, 0.4)])
    nodes = [node for event in rounds(mixed) for node in event.nodes]
    assert {node.drafter for node in nodes if not node.proposers} == {0, 1}
    assert all(node.drafter == node.proposers[0] for node in nodes if node.proposers)
    assert "Drafter B" in " ".join(explain_draft(node, event) for event in rounds(mixed) for node in event.nodes)
