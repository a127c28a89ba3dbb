"""`decodescope.capture`: the runs of `generate` calls, and that their results stay the same."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria
from transformers.generation.utils import GenerationMixin

from decodescope import core
from decodescope.core.events import (
    BeamsRanked,
    BeamStep,
    CacheMeasured,
    DraftRound,
    Finished,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.generate_recording import generate_hooks
from decodescope.core.generate_recording.generate_hooks import GenerateHooks
from decodescope.core.trace import EventChecker
from tests.core import tiny, zoo

PROMPT = [1, 17, 34, 11, 44, 32, 17, 34, 11]
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"do_sample": True, "temperature": 0.9, "top_p": 0.9},
    "several texts": {"do_sample": True, "num_return_sequences": 3},
    "beam search": {"num_beams": 3, "num_return_sequences": 2},
    "beam sampling": {"num_beams": 3, "do_sample": True, "top_k": 20},
    "early stopping": {"num_beams": 2, "early_stopping": True, "length_penalty": 0.5},
    "prompt lookup": {"prompt_lookup_num_tokens": 3},
    "sampled prompt lookup": {"prompt_lookup_num_tokens": 3, "do_sample": True},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "suppress_tokens": [17]},
}
ARCHITECTURES = (*tiny.ALL, "gpt_neox", "opt", "bloom")


def _network(name: str) -> Any:
    return (tiny.make(name) if name in tiny.ALL else zoo.make(name)).model


def _generate(network: Any, seed: int = 0, **settings: Any) -> torch.Tensor:
    torch.manual_seed(seed)
    ids = torch.tensor([PROMPT])
    found: torch.Tensor = network.generate(
        ids, attention_mask=torch.ones_like(ids), **{"max_new_tokens": 9, "pad_token_id": 0, **settings}
    )
    return found


def _check(run: core.CapturedRun) -> None:
    """Every event is valid, in order, and a page and a file can be made of it."""
    checker = EventChecker()
    checker.allow(1_000_000)
    for event in run.events:
        checker.check(event)
    assert isinstance(run.events[0], RunStarted)
    assert isinstance(run.events[-1], Finished)


CASES = [
    pytest.param(name, settings, id=f"{name}-{title}")
    for name in ARCHITECTURES
    for title, settings in STRATEGIES.items()
    if name != "mamba" or "lookup" not in title  # a recurrent state cannot be cropped
]


@pytest.mark.every(6)
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_captured_generate_returns_the_same(name: str, settings: dict[str, Any]) -> None:
    """Byte-identical ids with and without capture, and the recorded texts are these ids."""
    network = _network(name)
    plain = _generate(network, **settings)
    with core.capture(network) as captured:
        recorded = _generate(network, **settings)
    assert torch.equal(plain, recorded)
    assert not captured.troubles
    run = captured.run
    _check(run)
    start = 1 if network.config.is_encoder_decoder else len(PROMPT)
    for ids, row in zip(run.sequences, recorded.tolist(), strict=True):
        assert row[start : start + len(ids)] == ids
        assert all(token == 0 for token in row[start + len(ids) :])


def _without_times(event: Any) -> Any:
    changes = {
        name: 0.0 for name in ("seconds", "draft_seconds", "verify_seconds", "overhead_seconds")
        if name in {field.name for field in dataclasses.fields(event)}
    }  # fmt: skip
    return dataclasses.replace(event, **changes)


def _differences(one: Any, other: Any, path: str = "") -> list[str]:
    """List the paths at which two values differ by more than rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return (
            [] if one == other or math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-5) else [f"{path}: {one} {other}"]
        )
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        names = [field.name for field in dataclasses.fields(one)]
        parts = [(getattr(one, name), getattr(other, name), f"{path}.{name}") for name in names]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        parts = [(*pair, f"{path}[{index}]") for index, pair in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [f"{path}: {one} {other}"]
    return [found for part in parts for found in _differences(*part)]


def _decisions(events: list[Any]) -> list[Any]:
    kinds = (TokenChosen, BeamStep, BeamsRanked, SequenceFinished)
    return [_without_times(event) for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize(
    "settings",
    [{}, {"num_beams": 3, "num_return_sequences": 2}, {"num_beams": 4, "repetition_penalty": 1.3},
     {"num_beams": 3, "early_stopping": True, "eos_token_id": [2, 11, 17, 32, 6]},
     {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
     {"do_sample": True, "temperature": 0.8, "top_k": 7, "top_p": 0.9}],
    ids=["greedy", "beams", "processed beams", "early stopping", "penalties", "filters"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["llama", "bart"])
def test_captured_events_equal_those_of_a_run(name: str, settings: dict[str, Any]) -> None:
    """The same events as a run made here: tokens with alternatives and stages, beams with scores and fates."""
    model = tiny.make(name)
    config = GenerationConfig(max_new_tokens=9, **settings)
    with core.capture(model) as captured:
        _generate(model.model, **settings)
    assert not captured.troubles
    ours = core.run(model, core.Request(PROMPT, config, seed=0))
    theirs = captured.run
    assert theirs.sequences == ours.sequences
    assert _differences(_decisions(theirs.events), _decisions(ours.events)) == []
    assert theirs.events[0].strategy == ours.events[0].strategy  # type: ignore[attr-defined]


class Halve(LogitsProcessor):  # type: ignore[misc]
    """Halves the score of even ids, in place."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, ::2] *= 0.5
        return scores


class NoEven(LogitsProcessor):  # type: ignore[misc]
    """Bans even ids."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.index_fill(-1, torch.arange(0, scores.shape[-1], 2), -float("inf"))


def test_custom_processors_are_recorded_as_stages() -> None:
    """The caller's own processors appear by class name, with what they removed, also if they work in place."""
    network = _network("llama")
    own = [Halve(), NoEven()]
    plain = _generate(network, logits_processor=own, do_sample=True, top_k=5)
    with core.capture(network, top_n=5) as captured:
        recorded = _generate(network, logits_processor=own, do_sample=True, top_k=5)
    assert torch.equal(plain, recorded)
    token = next(event for event in captured.run.events if isinstance(event, TokenChosen))
    names = [(stage.name, stage.kind) for stage in token.funnel]
    assert names[0] == ("raw", "model")
    assert set(names[1:]) == {("Halve", "shift"), ("NoEven", "ban"), ("top_k", "cut")}
    by_name = {stage.name: stage for stage in token.funnel}
    assert by_name["NoEven"].survivors == tiny.VOCABULARY // 2
    raw = network(torch.tensor([PROMPT])).logits[0, -1].detach().softmax(-1)
    assert by_name["raw"].top[0][1] == pytest.approx(float(raw.max()), rel=1e-4)


def test_a_batch_is_one_run_per_prompt() -> None:
    """Padding is not part of a prompt; rows that ended early keep their own end."""
    network = _network("llama")
    ids = torch.tensor([[0, 0, 1, 17, 34], [1, 17, 34, 11, 44]])
    settings = {"attention_mask": (ids != 0).long(), "max_new_tokens": 12, "pad_token_id": 0,
                "eos_token_id": [2, 11, 32, 40, 41, 42, 43, 44, 45]}  # fmt: skip
    torch.manual_seed(3)
    plain = network.generate(ids, do_sample=True, num_return_sequences=2, **settings)
    with core.capture(network) as captured:
        torch.manual_seed(3)
        recorded = network.generate(ids, do_sample=True, num_return_sequences=2, **settings)
    assert torch.equal(plain, recorded)
    first, second = captured.runs
    assert [token.id for token in first.events[0].prompt] == [1, 17, 34]  # type: ignore[attr-defined]
    assert [token.id for token in second.events[0].prompt] == ids[1].tolist()  # type: ignore[attr-defined]
    rows = [ids for run in captured for ids in run.sequences]
    assert [row[5 : 5 + len(ids)] for row, ids in zip(recorded.tolist(), rows, strict=True)] == rows
    sizes = [event.bytes for run in captured for event in run.events if isinstance(event, CacheMeasured)]
    assert all(sizes)
    assert len(set(sizes[: len(sizes) // 2])) == len(set(sizes[len(sizes) // 2 :]))


def test_assisted_generation_has_rounds() -> None:
    """Drafted, accepted and rejected tokens, with the random numbers that decided."""
    target, draft = _network("llama"), tiny.make("gpt2").model
    for settings in ({}, {"do_sample": True}):
        plain = _generate(target, assistant_model=draft, max_new_tokens=20, **settings)
        with core.capture(target) as captured:
            recorded = _generate(target, assistant_model=draft, max_new_tokens=20, **settings)
        assert torch.equal(plain, recorded)
        assert not captured.troubles
        run = captured.run
        _check(run)
        rounds = [event for event in run.events if isinstance(event, DraftRound)]
        assert rounds
        assert run.events[0].strategy == "assisted"  # type: ignore[attr-defined]
        origins = [event.origin for event in run.events if isinstance(event, TokenChosen)]
        assert origins.count("draft") == sum(len(one.accepted) for one in rounds)
        if settings:
            tested = [node for one in rounds for node in one.nodes if node.ratio is not None]
            assert tested
            assert all((node.die < node.ratio) == (node.fate == "accepted") for node in tested if node.ratio < 1)  # type: ignore[operator]


def test_early_exit_records_the_outer_call_only() -> None:
    """The drafts are made by `generate` of the same model, which is not a run of its own."""
    network = _network("llama")
    plain = _generate(network, assistant_early_exit=2)
    with core.capture(network) as captured:
        recorded = _generate(network, assistant_early_exit=2)
    assert torch.equal(plain, recorded)
    assert len(captured) == 1
    assert captured.run.events[0].strategy == "early_exit"  # type: ignore[attr-defined]


class AfterThree(StoppingCriteria):  # type: ignore[misc]
    """Ends every text after three new tokens."""

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return torch.full((len(input_ids),), input_ids.shape[1] >= len(PROMPT) + 3)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({}, "length"), ({"stopping_criteria": [AfterThree()]}, "stopped"), ({"max_time": 0.0001}, "time"),
     ({"eos_token_id": list(range(61))}, "eos")],
)  # fmt: skip
def test_captured_run_has_the_stop_reason(settings: dict[str, Any], reason: str) -> None:
    network = _network("llama")
    with core.capture(network) as captured:
        _generate(network, **settings)
    end = next(event for event in captured.run.events if isinstance(event, SequenceFinished))
    assert end.reason == reason
    assert reason != "length" or end.limit == 9


def test_a_custom_function_is_captured() -> None:
    """`custom_generate` with a function that follows transformers' interface."""

    def second_best(model: Any, input_ids: torch.Tensor, logits_processor: Any, stopping_criteria: Any,
                    generation_config: Any, **kwargs: Any) -> torch.Tensor:  # fmt: skip
        done = False
        while not done:
            scores = logits_processor(input_ids, model(input_ids).logits[:, -1])
            input_ids = torch.cat([input_ids, scores.topk(2).indices[:, 1:]], 1)
            done = bool(stopping_criteria(input_ids, None).all())
        return input_ids

    network = _network("llama")
    plain = _generate(network, custom_generate=second_best, repetition_penalty=1.2)
    with core.capture(network) as captured:
        recorded = _generate(network, custom_generate=second_best, repetition_penalty=1.2)
    assert torch.equal(plain, recorded)
    run = captured.run
    _check(run)
    assert run.events[0].strategy == "second_best"  # type: ignore[attr-defined]
    assert all(event.final_rank == 2 for event in run.events if isinstance(event, TokenChosen))


LOOP = """
import torch

def generate(model, input_ids=None, inputs=None, max_new_tokens=5, **kwargs):
    ids = inputs if input_ids is None else input_ids
    for _ in range(max_new_tokens):
        ids = torch.cat([ids, model(ids).logits[:, -1].argmin(-1, keepdim=True)], 1)
    return ids
"""


def test_a_custom_folder_is_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `custom_generate` folder with a loop of its own, which uses no processors."""
    (tmp_path / "worst" / "custom_generate").mkdir(parents=True)
    (tmp_path / "worst" / "custom_generate" / "generate.py").write_text(LOOP)
    network, folder = _network("llama"), str(tmp_path / "worst")
    plain = _generate(network, custom_generate=folder, trust_remote_code=True)
    with core.capture(network) as captured:
        recorded = _generate(network, custom_generate=folder, trust_remote_code=True)
    assert torch.equal(plain, recorded)
    assert not captured.troubles
    run = captured.run
    _check(run)
    assert run.events[0].strategy == "worst"  # type: ignore[attr-defined]
    assert run.sequences == [recorded[0, len(PROMPT) :].tolist()]
    assert all(event.rank == tiny.VOCABULARY for event in run.events if isinstance(event, TokenChosen))


def test_capture_restores_the_model_attributes() -> None:
    """The model's attributes and its class are as before, after nested captures, an exception and a copy inside."""
    network = _network("llama")
    before, of_class = dict(vars(network)), dict(vars(type(network))) | dict(vars(GenerationMixin))
    outer, inner, twins = core.capture(network), core.capture(network, top_n=3), list[Any]()

    def fail() -> None:
        with outer:
            _generate(network)
            with inner:
                _generate(network)
                twins.append(copy.deepcopy(network))
            _generate(network)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    [twin] = twins
    assert vars(network) == before
    assert dict(vars(type(network))) | dict(vars(GenerationMixin)) == of_class
    assert network not in GenerateHooks._installed
    assert (len(outer), len(inner)) == (3, 1)
    with core.capture(network) as after:
        assert torch.equal(_generate(twin), _generate(network))
    assert len(after) == 1
    assert "generate" not in vars(pickle.loads(pickle.dumps(network)))


def test_failed_call_is_recorded_up_to_the_failure() -> None:
    """An exception of the caller's processor passes through; the run ends with the text so far."""

    class Raises(LogitsProcessor):  # type: ignore[misc]
        calls = 0

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            if self.calls == 4:
                raise KeyError("mine")
            return scores

    network = _network("llama")
    with core.capture(network) as captured, pytest.raises(KeyError, match="mine"):
        _generate(network, logits_processor=[Raises()])
    run = captured.run
    assert isinstance(run.failure, KeyError)
    assert len(run.sequences[0]) == 3
    assert not getattr(generate_hooks._calls, "stack", [])


def test_an_error_while_recording_does_not_reach_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _network("llama")
    plain = _generate(network)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("decodescope.core.generate_recording.call_recorder.compute_step_stats", broken)
    with core.capture(network) as captured, pytest.warns(RuntimeWarning, match="broken"):
        assert torch.equal(_generate(network), plain)
    assert [str(error) for error in captured.troubles] == ["broken"]


def test_capture_in_threads_records_their_own_calls() -> None:
    """A thread's call is recorded by the thread's own capture; a thread without one is recorded by all."""
    network = _network("llama")
    found: dict[str, core.Capture] = {}

    def own() -> None:
        with core.capture(network) as found["own"]:
            _generate(network)

    def run_in_thread(work: Callable[[], object]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with core.capture(network) as captured:
        run_in_thread(own)
        assert len(captured) == 0
        run_in_thread(lambda: _generate(network))
        _generate(network)
    assert (len(captured), len(found["own"])) == (2, 1)


def test_captured_runs_can_be_saved_and_tabulated(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    network = _network("llama")
    with core.capture(network) as captured:
        _generate(network)
        _generate(network, num_beams=2)
    paths = captured.save(tmp_path / "runs.decodescope")
    assert [path.name for path in paths] == ["runs-1.decodescope", "runs-2.decodescope"]
    assert list(core.replay(paths[0])) == captured.runs[0].events
    pages = captured.to_html(tmp_path / "runs.html")
    assert [path.name for path in pages] == ["runs.html"]
    assert "<html" in pages[0].read_text()
    table = captured.to_dataframe()
    assert isinstance(table, pandas.DataFrame)
    assert set(table["run"]) == {0, 1}
    assert len(captured.runs[0].to_dataframe()) == 9
    assert captured._repr_html_().count("<iframe") == 1


def test_invalid_capture_arguments_raise_an_error() -> None:
    with pytest.raises(core.errors.ParameterError, match="no generate"):
        core.capture("storyteller")
    network = _network("llama")
    with pytest.raises(core.errors.ParameterError):
        core.capture(network, top_n=-1)
    with pytest.raises(core.errors.ParameterError, match="No generate call"):
        _ = core.capture(network).run
