"""The Scale lab for real: processes of this machine, held against the plan to the byte, and against one process."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.errors import OutOfMemoryError, ParameterError, ScaleError
from decodescope.core.labs.scale import RankMeasurement, RankProgress, measure, measuring, measuring_memory
from decodescope.core.labs.scale.ranks import expected_load
from decodescope.core.labs.scale.ranks import run_measurement as inside
from decodescope.core.labs.scale.ranks.expected_load import predicted_parts, predicted_traffic
from decodescope.core.labs.scale.ranks.model_outline import ModelOutline
from decodescope.core.labs.scale.ranks.rank_messages import RankFailed, RankJob


def check(found: RankMeasurement) -> None:
    assert found.ranks == found.predicted
    # parts of tensors that cannot be divided evenly differ by an element or two for each collective
    assert found.traffic == pytest.approx(found.expected_traffic, rel=1e-4)
    assert found.losses == pytest.approx(found.alone, rel=1e-5)
    assert found.losses[0] > found.loss


@pytest.mark.slow
def test_zero_3_memory_equals_the_plan() -> None:
    found = measure("storyteller", "zero3", 2)
    check(found)
    assert found.ranks[0].parameters == core.labs.scale.plan(5_706_432, 2, "zero3", "float32").parameters
    assert found.traffic[0] == pytest.approx(found.paper_traffic, rel=1e-4)


@pytest.mark.fuzz
@pytest.mark.parametrize("scheme", ["ddp", "zero1", "zero2", "zero3"])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_scheme_matches_its_plan(scheme: str, processes: int) -> None:
    check(measure("storyteller", scheme, processes))


@pytest.mark.parametrize(
    ("scheme", "stage"),
    [
        ("zero2", "starts"),
        *(pytest.param(name, "step", marks=pytest.mark.slow) for name in ("zero2", "pipedream", "tensor", "zeror")),
    ],
)
def test_a_process_that_is_killed_ends_the_lab(scheme: str, stage: str) -> None:
    """No process is left running, and the error names the process that ended, and when."""
    ids = set()
    events = measuring_memory("storyteller", 2) if scheme == "zeror" else measuring("storyteller", scheme, 2)

    def kill_one() -> None:
        for event in events:
            assert isinstance(event, RankProgress)
            ids.add(event.process)
            if event.rank == 1 and event.stage == stage:
                os.kill(event.process, signal.SIGKILL)

    with pytest.raises(ScaleError, match=r"Process 2 of 2 exited .* code -9"):
        kill_one()
    assert [number for number in ids if Path(f"/proc/{number}").exists()] == []


class FakeLabProcesses:
    """Two processes that sent the given messages in this order."""

    ids = (1, 2)

    def __init__(self, *told: tuple[int, RankFailed | None]) -> None:
        self._messages = list(told)

    def __enter__(self) -> FakeLabProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def next_message(self, seconds: float) -> tuple[int, RankFailed | None] | None:
        return self._messages.pop(0) if self._messages else None

    def exit_code(self, rank: int) -> int:
        return -9

    def stderr_tail(self, rank: int) -> str:
        return ""


LOST = RankFailed("Connection reset by peer", False)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([(0, LOST), (0, None), (1, None)], "Process 2 of 2 exited .* code -9"),
        ([(1, None)], "Process 2 of 2 exited .* code -9"),
        ([(0, LOST), (1, LOST), (0, None), (1, None)], "Process 1 of 2 failed: Connection reset"),
    ],
)
def test_failed_process_is_named_instead_of_a_lost_connection(
    told: list[tuple[int, RankFailed | None]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "_EXIT_NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(inside, "LabProcesses", lambda *_: FakeLabProcesses(*told))
    jobs = [RankJob("", "zeror", rank, 2, 0, 1, 8) for rank in (0, 1)]
    with pytest.raises(ScaleError, match=words):
        list(inside.RankWatcher(jobs, threading.Event()).follow())


def test_stop_ends_all_processes() -> None:
    cancel, ids = threading.Event(), set()
    for event in measuring("storyteller", "ddp", 2, cancel=cancel):
        assert isinstance(event, RankProgress)
        ids.add(event.process)
        if len(ids) == 2:
            cancel.set()
    assert len(ids) == 2
    assert [number for number in ids if Path(f"/proc/{number}").exists()] == []


def test_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ScaleError, match=f"Port {port} of this machine is in use"):
            measure("storyteller", "ddp", 2, port=port)


def test_measurement_without_enough_memory_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decodescope.core.models.model_entry.free_memory", lambda: 10**6)
    monkeypatch.setattr(inside, "LabProcesses", None)
    with pytest.raises(OutOfMemoryError, match=r"2 processes need about 1\.1 GB, but 1\.0 MB are free"):
        measure("storyteller", "ddp", 2)
    with pytest.raises(ParameterError, match="At most 4"):
        measure("storyteller", "ddp", 5)


def test_uneven_partition_sizes_match_a_manual_computation() -> None:
    """A matrix of 5 × 2 and a vector of 3, on two ranks: rows are cut 3 + 2 and 2 + 1."""
    sizes = [(5, 2), (3,)]
    assert [parts.parameters for parts in predicted_parts(sizes, 2, "zero3")] == [4 * 8, 4 * 5]
    assert [parts.optimizer for parts in predicted_parts(sizes, 2, "zero3")] == [4 * (16 + 2), 4 * (10 + 2)]
    assert [parts.optimizer for parts in predicted_parts(sizes, 2, "zero1")] == [4 * (20 + 1), 4 * (6 + 1)]
    assert predicted_parts(sizes, 2, "zero2")[1].parameters == 4 * 13
    assert predicted_traffic(sizes, 2, "zero1") == (4 * (13 + 10), 4 * (13 + 3))  # the matrix is the first rank's
    assert predicted_traffic(sizes, 2, "zero3") == (4 * 3 * 16 // 2,) * 2  # padded: 6 × 2 and 4
    assert predicted_traffic(sizes, 1, "zero1") == predicted_traffic(sizes, 1, "ddp") == (0,)


@pytest.mark.slow
def test_tensor_parallel_generates_and_trains_like_one_process() -> None:
    found = measure("storyteller", "tensor", 2)
    check(found)
    assert found.difference < 1e-5
    assert found.written is not None
    assert found.written.ids == found.written.alone
    assert len(found.written.ids) == 24
    assert found.written.sent == pytest.approx(found.expected_written, rel=1e-4)
    assert found.ranks[0].parameters < 0.51 * 4 * 5_706_432


@pytest.mark.fuzz
@pytest.mark.parametrize("processes", [1, 3])
def test_tensor_parallel_with_remainders(processes: int) -> None:
    found = measure("storyteller", "tensor", processes)
    check(found)
    assert found.difference < 1e-5
    assert found.written is not None
    assert found.written.ids == found.written.alone
    assert found.written.sent == pytest.approx(found.expected_written, rel=1e-3)


def test_tensor_parallel_prediction_matches_a_manual_computation() -> None:
    """Two layers of width 4: every matrix halved, norms whole. 7 sums a layer, one for tokens, one for words."""
    layer = {"self_attn.q_proj": (4, 4), "self_attn.o_proj": (4, 4), "mlp.up_proj": (7, 4), "mlp.down_proj": (4, 7)}
    styles = {"self_attn.q_proj": "colwise", "self_attn.o_proj": "rowwise", "mlp.up_proj": "colwise"}
    plan = {f"model.layers.*.{name}": style for name, style in (styles | {"mlp.down_proj": "rowwise"}).items()}
    named = {f"model.layers.{n}.{name}.weight": size for n in (0, 1) for name, size in layer.items()}
    named |= {"model.embed_tokens.weight": (9, 4), "model.norm.weight": (4,)}
    config = {
        "num_hidden_layers": 2,
        "hidden_size": 4,
        "num_attention_heads": 2,
        "vocab_size": 9,
        "model_type": "llama",
    }
    tiny = ModelOutline(Path("tiny"), named, config | {"tie_word_embeddings": True}, frozenset(), plan | {
        "lm_head": "colwise_gather_output"
    })  # fmt: skip
    first, last = expected_load.rank_parts(tiny, 2)
    assert first.parameters == 4 * (2 * (8 + 8 + 16 + 16) + 20 + 4)
    assert last.parameters == 4 * (2 * (8 + 8 + 12 + 12) + 16 + 4)
    assert expected_load.step_traffic(tiny, 2, 3) == 4 * (2 * (7 * 2 + 2) * 3 * 4 + 3 * 10) // 2
    assert expected_load.paper_traffic(tiny, 2, 3) == 4 * 2 * 4 * 2 * 3 * 4 // 2
    assert expected_load.generation_traffic(tiny, 2) == 4 * (2 * (2 * 2 + 1) * 27 * 4 + 24 * 10) // 2
    with pytest.raises(ParameterError, match="2 attention heads cannot be divided evenly among 4"):
        expected_load.check_divisible(tiny, 4)
    with pytest.raises(ParameterError, match="no tensor parallelism plan for summarizer"):
        measure("summarizer", "tensor", 2)
