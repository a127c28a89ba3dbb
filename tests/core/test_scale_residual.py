"""ZeRO-R: memory laid out by hand, and a step of training in processes with its checkpoints divided."""

from __future__ import annotations

import socket

import pytest

from decodescope.core.errors import OutOfMemoryError, ParameterError, ScaleError
from decodescope.core.labs.scale import Block, Residual, arena, explain_residual, measuring_memory
from decodescope.core.labs.scale.ranks.residual import blocks_from_events


def test_long_lived_blocks_fragment_memory_unless_separated() -> None:
    """Two layers: each needs 6 bytes for a while, and leaves 2 that stay; then one block of 7 comes."""
    layers = [Block(0, 2, 6), Block(1, 9, 2, "checkpoint"), Block(3, 5, 6), Block(4, 9, 2, "checkpoint")]
    mixed = arena([*layers, Block(6, 8, 7)])
    assert [each.offset for each in mixed.placed] == [0, 6, 0, 8, 10]
    assert (mixed.top, mixed.live, mixed.gaps) == (17, 11, 6)
    apart = arena([*layers, Block(6, 8, 7)], apart=True)
    assert [each.offset for each in apart.placed] == [0, 2, 4, 4, 4]
    assert (apart.top, apart.live, apart.gaps) == (11, 11, 0)
    assert apart.most == {"checkpoint": 4, "other": 7}
    assert arena([]).top == 0


def test_blocks_are_read_from_profiler_events() -> None:
    def memory(place: int, size: int) -> dict[str, object]:
        return {"name": "[memory]", "args": {"Addr": place, "Bytes": size}}

    events = [
        memory(100, 4096), memory(200, 64), {"name": "held:checkpoint:100"}, memory(300, 8192), memory(100, -4096),
        memory(999, -4096), memory(100, 4096),
    ]  # fmt: skip
    assert blocks_from_events(events) == [Block(0, 2, 4096, "checkpoint"), Block(1, 4, 8192), Block(3, 4, 4096)]


def test_uneven_division_of_heads_is_refused() -> None:
    with pytest.raises(ParameterError, match="6 attention heads cannot be divided evenly among 4"):
        next(measuring_memory("storyteller", 4))
    with pytest.raises(ParameterError, match="At most 4"):
        next(measuring_memory("storyteller", 5))


def test_missing_memory_or_port_is_reported_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ScaleError, match="is in use"):
            next(measuring_memory("storyteller", 2, port=taken.getsockname()[1]))
    monkeypatch.setattr("decodescope.core.models.model_entry.free_memory", lambda: 10**6)
    with pytest.raises(OutOfMemoryError, match=r"2 processes need about 991 MB, but 1\.0 MB are free"):
        next(measuring_memory("storyteller", 2))


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.fuzz)])
def test_partitioned_checkpoints_keep_the_gradients(processes: int) -> None:
    (found,) = [event for event in measuring_memory("storyteller", processes) if isinstance(event, Residual)]
    whole = 12 * 64 * 192 * 4
    for without, stored in zip(found.without, found.kept, strict=True):
        assert (without.checkpoints, stored.checkpoints) == (whole, whole // processes)
        assert stored.buffer == found.expected.buffer == 1 << 20
        assert stored.squares == pytest.approx(without.squares, rel=1e-5)
    assert found.without[0].buffer == found.expected_without.buffer
    assert found.kept[0].checkpoints == found.expected.checkpoints
    assert found.sent == pytest.approx(found.expected.sent, rel=1e-4)
    assert found.expected.sent == whole * (processes - 1) // processes
    assert found.difference < 1e-5
    before, after = found.arenas
    assert before.most["checkpoint"] == whole
    assert after.most["checkpoint"] == whole // processes
    assert after.top < before.top
    assert after.gaps < before.gaps
    assert "keeps 295 kB of checkpoints instead of 590 kB" in explain_residual(found) or processes == 3
