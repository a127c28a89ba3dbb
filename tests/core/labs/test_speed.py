"""Measured ways to lower latency: rows, reasons, explanations that match the values, no process left running."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decodescope import core
from decodescope.core.labs import speed
from decodescope.core.labs.speed import MeasurementRequest, Row, RowMeasurement
from decodescope.core.labs.speed.events import LINES, MeasurementFailed
from decodescope.core.labs.speed.measured_model import MeasuredModel
from decodescope.core.labs.speed.measured_rows import measure_rows, plan_rows
from decodescope.core.labs.speed.techniques import parallel
from decodescope.resources import depth

QUICK = MeasurementRequest("storyteller", threads=1, seconds=0.01, repeats=1)


def run_rows(asked: MeasurementRequest) -> dict[str, RowMeasurement | speed.SkippedRow]:
    """Return the result of each row by name, measured in this process."""
    events = list(measure_rows(asked, threading.Event()))
    assert events[0] == plan_rows(asked)
    assert isinstance(events[-1], speed.MeasurementFinished)
    found = {one.row.name: one for one in events if isinstance(one, (RowMeasurement, speed.SkippedRow))}
    assert [Row(asked.ways[0], name) for name in found] == list(plan_rows(asked).rows)
    return found


def row(way: speed.Way, name: str, *speeds: float, **more: object) -> RowMeasurement:
    return replace(RowMeasurement(Row(way, name), speeds, 1_000_000, 500.0), **more)  # type: ignore[arg-type]


def test_importing_the_lab_loads_no_torch() -> None:
    code = (
        "import sys; from decodescope import core; core.labs.speed.MeasurementRequest('x'); "
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_speculative_rows_generate_the_plain_text() -> None:
    found = run_rows(replace(QUICK, ways=("drafts",)))
    assert all(isinstance(one, RowMeasurement) and one.same is not False for one in found.values())
    drafted = found["assisted"]
    assert isinstance(drafted, RowMeasurement)
    assert drafted.per_pass is not None
    assert drafted.per_pass > 1
    assert drafted.base > 0


@pytest.mark.slow
def test_small_model_is_measured_on_one_thread() -> None:
    ground = next(one for one in speed.measuring(replace(QUICK, threads=0)) if isinstance(one, speed.SpeedReference))
    assert ground.threads == 1


@pytest.mark.slow
def test_disk_offload_keeps_the_text_and_has_a_speed_estimate() -> None:
    found = run_rows(replace(QUICK, ways=("offload",)))
    memory, disk, drafted = (found[name] for name in ("memory", "disk", "drafted"))
    assert isinstance(memory, RowMeasurement)
    assert isinstance(disk, RowMeasurement)
    assert isinstance(drafted, RowMeasurement)
    assert (disk.same, drafted.same) == (True, True)
    assert disk.bytes < memory.bytes / 2
    assert disk.predicted
    assert drafted.predicted
    assert drafted.per_pass is not None
    assert drafted.per_pass > 1
    assert drafted.base == disk.speed


def test_rows_that_cannot_be_measured_have_a_reason() -> None:
    requested = replace(QUICK, model="storyteller-mamba", ways=("drafts",))
    found = run_rows(requested)
    assert isinstance(found["plain"], RowMeasurement)
    lost = found["prompt_lookup"]
    assert isinstance(lost, speed.SkippedRow)
    assert "recurrent state" in lost.reason
    nobody = found["assisted"]
    assert isinstance(nobody, speed.SkippedRow)
    assert nobody.reason == "This disk has no smaller model with the tokenizer of storyteller-mamba."


def test_rows_without_enough_memory_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decodescope.core.labs.speed.measured_model.free_memory", lambda: 10**6)
    found = run_rows(replace(QUICK, ways=("weights",)))
    assert {type(one) for one in found.values()} == {speed.SkippedRow}
    lost = found["int4"]
    assert isinstance(lost, speed.SkippedRow)
    assert lost.reason == "Its weights need 21.8 MiB, but only 977 KiB are free."


@pytest.fixture
def subject() -> MeasuredModel:
    return MeasuredModel(QUICK, threading.Event())


def test_uneven_division_of_attention_heads_is_refused(subject: MeasuredModel) -> None:
    with pytest.raises(core.errors.ParameterError, match="6 attention heads cannot be divided evenly among 4"):
        parallel.measure(subject, Row("parallel", "4"), {})


@pytest.mark.slow
def test_two_processes_generate_the_text_of_one(subject: MeasuredModel) -> None:
    done: dict[str, RowMeasurement] = {}
    for name in ("1", "2"):
        done[name] = parallel.measure(subject, Row("parallel", name), done)
    assert done["2"].same is True
    assert 0.5 <= done["2"].bytes / done["1"].bytes < 0.51
    alone = subject.run_once(subject.base, subject.tokens).sequences[0]
    assert subject.sequences_by_row[Row("parallel", "1")] == tuple(alone)


def test_events_survive_encoding_between_processes() -> None:
    reported = [*plan_rows(QUICK).rows[:1], row("batch", "8", 1.5, 2.0, texts=8, same=True)]
    for event in (
        speed.RowPlan((reported[0],)),
        reported[1],
        speed.SkippedRow(reported[0], "词"),
        MeasurementFailed("a", "b", "c"),
    ):  # type: ignore[arg-type]
        assert LINES.decode(LINES.encode(event)) == event
    assert LINES.decode(b'{"kind": "RowMeasurement", "val') is None
    assert LINES.decode(b'{"kind": "Other", "value": 1}') is None


def test_stop_kills_the_measuring_process(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel, started = threading.Event(), []
    popen = subprocess.Popen

    def start(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **kwargs))
        cancel.set()
        return started[-1]

    monkeypatch.setattr("decodescope.core.labs.processes.lab_processes.subprocess.Popen", start)
    assert list(speed.measuring(QUICK, cancel)) == []
    assert [process.poll() for process in started] == [-9]


@pytest.mark.slow
def test_weights_comparison_measures_four_rows() -> None:
    events = list(speed.measuring(replace(QUICK, ways=("weights",))))
    assert isinstance(events[-1], speed.MeasurementFinished)
    assert sum(isinstance(event, RowMeasurement) for event in events) == 4


def test_missing_model_raises_model_not_found() -> None:
    with pytest.raises(core.errors.ModelNotFoundError):
        list(measure_rows(replace(QUICK, model="nobody"), threading.Event()))


@pytest.fixture(params=[depth.PLAIN, depth.USUAL, depth.EXACT])
def at_depth(request: pytest.FixtureRequest) -> Iterator[str]:
    depth.set_depth(request.param)
    yield request.param
    depth.set_depth(depth.USUAL)


def test_every_explanation_depth_has_a_text(at_depth: str) -> None:
    rows = {
        "batch": [row("batch", "1", 10.0), row("batch", "64", 80.0, texts=64)],
        "weights": [row("weights", "float32", 10.0), row("weights", "int8", 20.0)],
        "drafts": [row("drafts", "plain", 10.0), row("drafts", "assisted", 20.0, same=True, per_pass=3.0)],
        "offload": [row("offload", "disk", 10.0, predicted=9.0), row("offload", "drafted", 20.0, per_pass=3.0)],
        "parallel": [row("parallel", "1", 10.0), row("parallel", "2", 5.0, same=True)],
        "compiled": [row("compiled", "dynamic", 10.0), row("compiled", "compiled", 20.0, same=True)],
    }  # fmt: skip
    for way, found in rows.items():
        reported = speed.explain_way(way, found)  # type: ignore[arg-type]
        assert "{" not in reported
        assert reported.figures or at_depth != depth.EXACT


def test_explanations_match_the_measured_figures() -> None:
    one = row("batch", "1", 9.0, 10.0, 11.0)
    eight = row("batch", "8", 39.0, 40.0, 41.0, texts=8)
    many = row("batch", "64", 30.0, 31.0, 32.0, texts=64)
    assert speed.explain_way("batch", [one, eight, many]) == (
        "8 texts at once were fastest: 40 tokens/s in total, 4.0 × one text. Each text had 5 tokens/s, "
        "50 % of its speed alone."
    )
    noise = row("batch", "2", 10.5, 12.0, 13.0, texts=2)
    assert speed.explain_way("batch", [one, noise]) == (
        "Several texts at once were not clearly faster here than a single one, which reached 10 tokens/s."
    )
    plain = row("weights", "float32", 10.0)
    packed = row("weights", "int8", 25.0, bytes=260_000)
    assert speed.explain_way("weights", [plain, packed]) == (
        "int8 was fastest: 25 tokens/s, 2.5 × float32, with 26 % of its memory."
    )
    slow = replace(packed, speeds=(9.0,))
    assert speed.explain_way("weights", [plain, slow]) == (
        "Fewer bits were not clearly faster here than float32 with 10 tokens/s. int8 uses 26 % of its memory."
    )


def test_explanation_states_the_speedup_of_drafts_with_offload() -> None:
    disk = row("offload", "disk", 2.0, predicted=2.2, same=True)
    drafted = row("offload", "drafted", 7.0, same=True, per_pass=4.0)
    assert speed.explain_way("offload", [disk, drafted]) == (
        "With 1.0 MB in memory and the rest read from disk for each pass: 2 tokens/s, with 2.2 predicted. "
        "Drafts made that 3.5 × as fast, 7 tokens/s: one read yields 4.0 tokens. All wrote the same text."
    )


def test_lookup_without_accepted_tokens_is_not_called_faster() -> None:
    """A lookup without accepted tokens was only faster because another process slowed the baseline down."""
    plain = row("drafts", "plain", 100.0, 101.0)
    lucky = row("drafts", "prompt_lookup", 300.0, 310.0, per_pass=1.0, base=100.5, same=True)
    drafted = row("drafts", "assisted", 150.0, 160.0, per_pass=2.4, base=100.0, same=True)
    assert "not by its drafts" in speed.explain_way("drafts", [plain, lucky])
    assert speed.explain_way("drafts", [plain, lucky, drafted]).startswith("Draft model was fastest: 155")


@pytest.mark.parametrize(("way", "base", "other"), [
    ("batch", "1", "8"), ("weights", "float32", "int8"), ("drafts", "plain", "assisted"),
    ("offload", "disk", "drafted"), ("parallel", "1", "2"), ("compiled", "dynamic", "compiled"),
])  # fmt: skip
def test_gain_within_the_variation_is_called_not_clear(at_depth: str, way: str, base: str, other: str) -> None:
    """A row that came to 1.8 times the speed, with repeats that overlap those of its reference."""
    first = row(way, base, 5.0, 10.0, 16.0, predicted=9.0)  # type: ignore[arg-type]
    second = row(way, other, 9.0, 18.0, 20.0, per_pass=2.0, same=True)  # type: ignore[arg-type]
    sentence = speed.explain_way(way, [first, second])  # type: ignore[arg-type]
    unclear = ("clear", "within the variation", "differ as much", "overlap")
    assert any(words in sentence for words in unclear), (at_depth, sentence)
    assert not any(words in sentence for words in ("pay off", "cost more", "gains nothing", "are not faster")), sentence


def test_interleaved_baseline_replaces_the_single_measurement() -> None:
    plain = row("drafts", "plain", 100.0, 101.0)
    slow = row("drafts", "assisted", 150.0, 160.0, per_pass=2.4, base=200.0, against=(190.0, 210.0), same=True)
    assert speed.explain_way("drafts", [plain, slow]).startswith(
        "Speculative decoding did not pay off here: the best, Draft model, reached 0.78 × token by token."
    )


def test_explanation_states_whether_the_texts_are_equal() -> None:
    plain = row("drafts", "plain", 10.0)
    lookup = row("drafts", "prompt_lookup", 12.0, 11.0, same=True, per_pass=1.4)
    early = row("drafts", "early_exit", 8.0, same=False, per_pass=2.0)
    assert speed.explain_way("drafts", [plain, lookup]) == (
        "Prompt lookup was fastest: 11.5 tokens/s, 1.1 × token by token, with 1.4 tokens per pass of the model. "
        "All wrote the same text."
    )
    assert speed.explain_way("drafts", [plain, early]) == (
        "Speculative decoding did not pay off here: the best, Early exit, reached 0.8 × token by token. "
        "Early exit wrote a different text: near ties are decided by the order of summation."
    )
    alone, two = row("parallel", "1", 10.0), row("parallel", "2", 4.0, same=True, bytes=500_000)
    assert speed.explain_way("parallel", [alone, two]) == (
        "2 processes hold 500 kB of the weights each, and together are 0.4 × as fast as one. Sending and "
        "waiting in every layer cost more than the smaller products save. All wrote the same text."
    )
