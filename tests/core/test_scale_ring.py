"""Collectives around a ring, step by step: against sums by hand, and against torch.distributed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale import ring

TENSORS = [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]]


def test_all_reduce_matches_a_manual_computation() -> None:
    steps = ring("all_reduce", TENSORS)
    assert len(steps) == 1 + 2 * 2
    first = steps[1]
    assert [(hand.device, hand.to, hand.chunk) for hand in first.hands] == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    chunk = first.holds[1][2]
    assert chunk is not None
    assert (chunk.values, chunk.summed) == ((33.0,), (0, 1))
    halfway = steps[2]  # each has all of its own part by then, as after a reduce-scatter
    assert [chunk.summed for device, row in enumerate(halfway.holds) if (chunk := row[device])] == [(0, 1, 2)] * 3
    assert [chunk.values for chunk in steps[-1].holds[0] if chunk] == [(111.0,), (222.0,), (333.0,)]
    assert steps[-1].sent == (16, 16, 16)  # 2 · (N − 1)/N · S = 2 · 2/3 · 12 bytes


@pytest.mark.parametrize("count", [2, 3, 5])
def test_ring_results_equal_torch_distributed(count: int) -> None:
    """Whole numbers, so that no order of adding matters. Gloo's processes are threads here, each a rank."""
    generator = torch.Generator().manual_seed(count)
    tensors = torch.randint(1, 99, (count, 2 * count), generator=generator).float()
    store = dist.HashStore()

    def rank(number: int) -> tuple[list[float], list[float], list[float]]:
        group = dist.ProcessGroupGloo(store, number, count, timedelta(seconds=30))
        summed, result, all_of_them = tensors[number].clone(), torch.zeros(2), torch.zeros(2 * count)
        group.allreduce([summed]).wait()
        group._reduce_scatter_base(result, tensors[number].clone()).wait()
        group._allgather_base(all_of_them, tensors[number][2 * number : 2 * number + 2].clone()).wait()
        return summed.tolist(), result.tolist(), all_of_them.tolist()

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(rank, range(count)))
    ends = {kind: ring(kind, tensors.tolist())[-1].holds for kind in ("all_reduce", "reduce_scatter", "all_gather")}
    for number, (summed, result, all_of_them) in enumerate(found):
        assert [v for chunk in ends["all_reduce"][number] if chunk for v in chunk.values] == summed
        assert [v for chunk in ends["all_gather"][number] if chunk for v in chunk.values] == all_of_them
        own = ends["reduce_scatter"][number][number]
        assert own is not None
        assert list(own.values) == result


def test_invalid_ring_arguments_are_refused() -> None:
    with pytest.raises(ParameterError):
        ring("gossip", TENSORS)
    with pytest.raises(ParameterError):
        ring("all_reduce", [[1.0], [1.0, 2.0]])
