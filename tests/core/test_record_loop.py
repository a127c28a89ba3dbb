"""`decodescope.record_loop`: an own loop without `generate` is a run like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.events import Finished, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.trace import EventChecker
from tests.core import tiny

PROMPT = [1, 17, 34, 11]


def _write(model: core.LoadedModel, rows: int = 1, **options: Any) -> core.LoopRecording:
    ids = torch.tensor([PROMPT] * rows)
    with torch.no_grad(), core.record_loop(model, None, PROMPT, rows=rows, **options) as loop:
        for step in range(5):
            scores = model.model(ids).logits[:, -1]
            mine = scores.clone()
            mine[:, 3] = -float("inf")
            kept = scores.clone()
            chosen = mine.argmax(-1)
            loop.step(scores, chosen, stages={"mine": mine})
            assert torch.equal(scores, kept)
            ids = torch.cat([ids, chosen[:, None]], 1)
            if rows > 1 and step == 2:
                loop.end(1, "eos")
    return loop


def test_recorded_loop_has_the_tokens_and_stages(tmp_path: Path) -> None:
    model = tiny.make("llama")
    run = _write(model, name="my loop", settings={"temperature": 0.5}).run
    expected = core.run(model, core.Request(PROMPT, {"max_new_tokens": 5, "suppress_tokens": [3]}))
    assert run.sequences == expected.sequences
    checker = EventChecker()
    checker.allow(1_000_000)
    for event in run.events:
        checker.check(event)
    ours = [event for event in run.events if isinstance(event, TokenChosen)]
    theirs = [event for event in expected.events if isinstance(event, TokenChosen)]
    for one, other in zip(ours, theirs, strict=True):
        assert one.raw_log_probability == pytest.approx(other.raw_log_probability, abs=1e-5)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)
        assert (one.rank, one.final_rank) == (other.rank, other.final_rank)
        assert [stage.kind for stage in one.funnel] == ["model", "ban"]
        assert one.funnel[1].name == "mine"
    started, last = run.events[0], run.events[-1]
    assert isinstance(started, RunStarted)
    assert isinstance(last, Finished)
    assert (started.strategy, started.settings) == ("my loop", (("temperature", 0.5),))
    assert ("function", "my loop") in run.request.call_facts
    assert list(core.replay(run.save(tmp_path / "loop.decodescope"))) == run.events
    assert "<html" in run.to_html(tmp_path / "loop.html").read_text()


def test_rows_of_a_loop_end_on_their_own() -> None:
    run = _write(tiny.make("llama"), rows=2).run
    assert [len(ids) for ids in run.sequences] == [5, 3]
    ends = {event.sequence: event.reason for event in run.events if isinstance(event, SequenceFinished)}
    assert ends[1] == "eos"


def test_failure_of_a_loop_is_recorded() -> None:
    model = tiny.make("llama")
    loop = core.record_loop(model, None, torch.tensor([PROMPT]))

    def fail() -> None:
        with loop:
            loop.step(torch.zeros(tiny.VOCABULARY), 4, method="my pick")
            raise KeyError("mine")

    with pytest.raises(KeyError):
        fail()
    assert isinstance(loop.run.failure, KeyError)
    assert loop.run.sequences == [[4]]


@pytest.mark.parametrize(
    ("scores", "chosen", "stages", "words"),
    [
        (torch.zeros(2, 7), [1, 2], (), "shape"),
        (torch.zeros(7), 7, (), "chosen tokens"),
        (torch.zeros(7), [1, 2], (), "chosen tokens"),
        (torch.zeros(7), True, (), "chosen tokens"),
        (torch.zeros(7, dtype=torch.int64), 1, (), "not a tensor of numbers"),
        ([0.0], 0, (), "not a tensor of numbers"),
        (torch.zeros(7), 1, {"mine": torch.zeros(6)}, "shape"),
        (torch.zeros(7), 1, [torch.zeros(7)], "stages"),
        (torch.zeros(7), 1, "mine", "stages"),
    ],
)  # fmt: skip
def test_invalid_steps_are_refused(scores: Any, chosen: Any, stages: Any, words: str) -> None:
    with core.record_loop(tiny.make("llama"), None, PROMPT) as loop:
        with pytest.raises(core.errors.ParameterError, match=words):
            loop.step(scores, chosen, stages=stages)
        for reason, row in (("bored", 0), ("eos", 1), ("eos", None)):
            with pytest.raises(core.errors.ParameterError):
                loop.end(row, reason)  # type: ignore[arg-type]
        loop.end()
        with pytest.raises(core.errors.ParameterError, match="have ended"):
            loop.step(torch.zeros(7), 1)
    with pytest.raises(core.errors.ParameterError, match="recorded already"):
        loop.__enter__()


def test_invalid_arguments_are_refused() -> None:
    model = tiny.make("llama")
    for options in ({"rows": 0}, {"rows": True}, {"top_n": -1}, {"name": 3}, {"settings": 3}):
        with pytest.raises(core.errors.ParameterError):
            core.record_loop(model, None, PROMPT, **options)  # type: ignore[arg-type]
    with pytest.raises(core.errors.ParameterError, match="no generate"):
        core.record_loop("storyteller", None, PROMPT)  # type: ignore[arg-type]
    loop = core.record_loop(model, None, PROMPT)
    with pytest.raises(core.errors.ParameterError, match="not begun"):
        _ = loop.run
    with pytest.raises(core.errors.ParameterError, match="not begun"):
        loop.step(torch.zeros(7), 1)
