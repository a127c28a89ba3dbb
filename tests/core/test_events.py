"""Rules that the event stream of every strategy follows."""

from __future__ import annotations

import dataclasses
import math
import pickle
import threading
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import events
from decodescope.core.decoding.processor_pipeline import StageHeading
from decodescope.core.decoding.step_stats import compute_step_stats
from decodescope.core.errors import NumericError
from decodescope.core.events import (
    EVENTS,
    CacheMeasured,
    Event,
    Finished,
    Prefilled,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.models.text import TokenSpellings
from tests.core import tiny
from tests.core.spec_models import chosen_tokens

STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 0.9, "top_p": 0.9, "top_k": 20},
    "contrastive": {"penalty_alpha": 0.6, "top_k": 4},
    "dola": {"dola_layers": "high"},
}


def test_every_event_is_listed() -> None:
    found = {value for value in vars(events).values() if isinstance(value, type) and issubclass(value, Event)}
    assert {Event, *EVENTS} == found
    assert all(value.__name__ in events.__all__ for value in found)


@pytest.fixture(params=STRATEGIES)
def result(request: pytest.FixtureRequest) -> core.Result:
    config = GenerationConfig(max_new_tokens=40, eos_token_id=60, **STRATEGIES[request.param])
    return core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config, top_n=5))


def assert_plain(value: Any) -> None:
    if dataclasses.is_dataclass(value):
        assert value.__dataclass_params__.frozen
        for field in dataclasses.fields(value):
            assert_plain(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            assert_plain(item)
    else:
        assert isinstance(value, (int, float, str, bool, type(None), list, dict)), type(value)


def test_events_have_the_documented_order(result: core.Result) -> None:
    kinds = [type(event) for event in result.events]
    assert kinds[0] is RunStarted
    assert kinds[1] is Prefilled
    assert kinds[-1] is Finished
    assert kinds.count(SequenceFinished) == 1
    assert kinds.index(SequenceFinished) > max(i for i, kind in enumerate(kinds) if kind is TokenChosen)


def test_events_are_plain_frozen_data(result: core.Result) -> None:
    for event in result.events:
        assert isinstance(event, Event)
        assert_plain(event)
        assert pickle.loads(pickle.dumps(event)) == event


def test_probabilities_are_consistent_with_log_probabilities(result: core.Result) -> None:
    for event in chosen_tokens(result):
        assert event.raw_probability == pytest.approx(math.exp(event.raw_log_probability))
        assert event.probability == pytest.approx(math.exp(event.log_probability))
        assert 0 < event.probability <= 1 + 1e-6
        assert 0 <= event.entropy <= math.log(tiny.VOCABULARY) + 1e-5
        assert 1 <= event.rank <= tiny.VOCABULARY


def test_alternatives_are_ranked_and_contain_the_choice(result: core.Result) -> None:
    for event in chosen_tokens(result):
        ranked = [item.rank for item in event.alternatives]
        assert ranked == sorted(ranked)
        assert ranked[:5] == [1, 2, 3, 4, 5]
        mine = next(item for item in event.alternatives if item.id == event.id)
        assert (mine.rank, mine.probability) == (event.rank, pytest.approx(event.probability, abs=1e-6))


def test_funnel_narrows_from_stage_to_stage(result: core.Result) -> None:
    for event in chosen_tokens(result):
        assert event.funnel[0].name == "raw"
        assert event.funnel[0].survivors == tiny.VOCABULARY
        for before, after in zip(event.funnel, event.funnel[1:], strict=False):
            assert after.survivors <= before.survivors
            assert after.raw_mass <= before.raw_mass + 1e-6
            assert 0 < after.mass <= 1
        assert sum(share for _, share in event.funnel[-1].top) <= 1 + 1e-5


def test_reported_numbers_equal_the_models_distribution() -> None:
    """Every value of the last step, recomputed from the logits of the whole text."""
    model, ids = tiny.shared("llama"), tiny.prompt()
    config = GenerationConfig(do_sample=True, temperature=0.7, top_k=7, max_new_tokens=9)
    result = core.run(model, core.Request(ids, config, top_n=4, seed=2))
    event, text = chosen_tokens(result)[-1], result.sequences[0]
    with torch.no_grad():
        raw = model.model(torch.tensor([ids + text[:-1]])).logits[0, -1].log_softmax(-1)
    cold = (raw / 0.7).masked_fill(raw < raw.topk(7).values[-1], -math.inf).log_softmax(-1)
    assert event.raw_log_probability == pytest.approx(raw[event.id].item(), abs=1e-4)
    assert event.log_probability == pytest.approx(cold[event.id].item(), abs=1e-4)
    assert event.rank == int((raw > raw[event.id]).sum()) + 1
    assert event.entropy == pytest.approx(-(raw.exp() * raw).sum().item(), abs=1e-4)
    assert event.varentropy == pytest.approx((raw.exp() * raw**2).sum().item() - event.entropy**2, abs=1e-3)
    assert [item.id for item in event.alternatives][:4] == raw.topk(4).indices.tolist()
    assert [(stage.name, stage.survivors) for stage in event.funnel] == [("raw", 61), ("temperature", 61), ("top_k", 7)]
    assert event.funnel[2].raw_mass == pytest.approx(raw.exp().topk(7).values.sum().item(), abs=1e-4)
    assert event.funnel[2].mass == pytest.approx((raw / 0.7).softmax(-1).topk(7).values.sum().item(), abs=1e-4)


def test_the_likeliest_after_processing_are_among_the_alternatives() -> None:
    """Processors may lift a token from far below: rank and runner-up are those of the whole distribution."""
    model, ids = tiny.shared("llama"), tiny.prompt()
    config = GenerationConfig(max_new_tokens=30, sequence_bias=[[[token], float(token % 7)] for token in range(3, 60)])
    lifted, result = 0, core.run(model, core.Request(ids, config, top_n=4))
    for event in chosen_tokens(result):
        with torch.no_grad():
            raw = model.model(torch.tensor([ids + result.sequences[0][: event.step]])).logits[0, -1]
        bias = torch.tensor([float(token % 7) if 3 <= token < 60 else 0.0 for token in range(tiny.VOCABULARY)])
        final, raw = (raw + bias).log_softmax(-1), raw.log_softmax(-1)
        assert event.final_rank == int((final > final[event.id]).sum()) + 1 == 1
        known = {item.id: item for item in event.alternatives}
        assert {*final.topk(4).indices.tolist(), *raw.topk(4).indices.tolist()} == set(known) | {event.id}
        lifted += len(known) > 5
        for token, item in known.items():
            assert item.rank == int((raw > raw[token]).sum()) + 1
            assert (item.raw_log_probability, item.log_probability) == pytest.approx(
                (raw[token].item(), final[token].item()), abs=1e-3
            )
    assert lifted > 10


def test_events_without_tracing_have_no_details() -> None:
    config = GenerationConfig(max_new_tokens=4)
    for event in chosen_tokens(core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config, top_n=0))):
        assert event.alternatives == event.funnel == ()
        assert event.probability > 0


@pytest.mark.parametrize("kind", tiny.ALL)
def test_cache_bytes_equal_the_storage_sizes(kind: str) -> None:
    model = tiny.shared(kind)
    config = GenerationConfig(max_new_tokens=20, suppress_tokens=[2])
    result = core.run(model, core.Request(tiny.prompt(), config))
    measured = [event for event in result.events if isinstance(event, CacheMeasured)]
    assert measured[-1].bytes == result.metrics.cache_bytes > 0
    for event in measured:
        assert sum(size for _, _, size in event.parts) == sum(event.layers) == event.bytes <= event.peak


def test_metrics(result: core.Result) -> None:
    metrics = result.metrics
    assert metrics.prompt_tokens == 12
    assert metrics.new_tokens == len(result.sequences[0]) > 9
    assert 0 < (metrics.time_to_first_token or 0) < metrics.seconds
    assert (metrics.decode_tokens_per_second or 0) > 0
    assert (metrics.prefill_tokens_per_second or 0) > 0
    assert metrics.acceptance_rate is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cancelled_run_keeps_its_text(strategy: str) -> None:
    cancel, seen = threading.Event(), []
    config = GenerationConfig(max_new_tokens=200, eos_token_id=60, **STRATEGIES[strategy])
    for event in core.stream(tiny.shared("llama"), core.Request(tiny.prompt(), config), cancel):
        seen.append(event)
        if isinstance(event, TokenChosen) and event.step == 6:
            cancel.set()
    last = seen[-1]
    assert isinstance(last, Finished)
    assert last.reason == "stopped"
    assert len(last.sequences[0]) in (7, 8)  # fast steps are reported in pairs
    assert [event.reason for event in seen if isinstance(event, SequenceFinished)] == ["stopped"]


def test_a_model_that_forbids_tokens_itself() -> None:
    """Logits of -inf have no share in the entropy and are not counted as survivors, with or without a later stage."""
    logits = torch.tensor([[0.0, -math.inf, math.log(3.0), -math.inf]])
    cut = logits.masked_fill(torch.tensor([[True, False, False, False]]), -math.inf)
    for scores, names in (([logits], []), ([logits, cut], [StageHeading("top_k", "top-k 1", 1, "cut")])):
        (reading,) = compute_step_stats(scores, torch.tensor([2]), 4, names, TokenSpellings(None))
        assert reading.entropy == pytest.approx(0.25 * math.log(4) + 0.75 * math.log(4 / 3), abs=1e-6)
        assert reading.varentropy == pytest.approx(3 / 16 * math.log(3) ** 2, abs=1e-6)  # of two: p q ln²(p / q)
        assert [stage.survivors for stage in reading.details.funnel()] == [2, 1][: len(scores)]
        assert reading.rank == 1
    assert reading.details.funnel()[1].mass == pytest.approx(0.75)
    assert [item.probability for item in reading.details.alternatives()] == pytest.approx([1.0, 0.0, 0.0, 0.0])


def test_alternatives_contain_the_likeliest_before_and_after() -> None:
    """The first two of 0.5, 0.25, 0.125, 0.125 are banned; the two likeliest before and after are reported."""
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]]).log()
    struck = logits.clone()
    struck[0, :2] = -math.inf
    struck[0, 2:] += torch.tensor([0.0, math.log(4.0), 0.0])  # 0.125, 0.25, 0.0625: shares of 0.4375
    (reading,) = compute_step_stats(
        [logits, struck], torch.tensor([3]), 2, [StageHeading("bias", "bias", 1, "shift")], TokenSpellings(None)
    )
    reported = [(item.id, item.rank, item.raw_probability, item.probability) for item in reading.details.alternatives()]
    assert reported == [
        (0, 1, pytest.approx(0.5), 0.0),
        (1, 2, pytest.approx(0.25), 0.0),
        (2, 3, pytest.approx(0.125), pytest.approx(2 / 7)),
        (3, 4, pytest.approx(0.0625), pytest.approx(4 / 7)),
    ]


def test_failed_run_reports_every_token_before_the_failure() -> None:
    """Steps wait for each other in pairs; a failure between the two must not lose the first."""
    for passes in (3, 4):
        model, count = tiny.make("llama"), iter(range(100))
        model.model.lm_head.register_forward_hook(
            lambda _module, _given, logits, count=count, passes=passes: (
                logits if next(count) < passes else logits * math.nan
            )
        )
        seen: list[Event] = []
        with pytest.raises(NumericError):
            seen.extend(core.stream(model, core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=20))))
        assert [event.step for event in seen if isinstance(event, TokenChosen)] == list(range(passes))


def test_run_cancelled_before_the_start_reads_nothing() -> None:
    cancel = threading.Event()
    cancel.set()
    result = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=50)), cancel)
    assert result.reason == "stopped"
    assert result.sequences == [[]]
    assert not any(isinstance(event, (Prefilled, TokenChosen)) for event in result.events)


def test_a_closed_generator_leaves_no_inference_mode() -> None:
    events = core.stream(tiny.shared("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=50)))
    for _ in range(4):
        next(events)
        assert not torch.is_inference_mode_enabled()
    events.close()
    assert torch.ones(1, requires_grad=True).sum().requires_grad
