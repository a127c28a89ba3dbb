"""Collectives around a ring, step by step: against sums by hand, and against torch.distributed."""

from __future__ import annotations

import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from decodescope.core.errors import ParameterError
from decodescope.core.labs.scale import ring
from decodescope.core.labs.scale.ring_collectives import FLOAT_BYTES, sent_by_ring
from tests.core.socket_bytes import count_socket_bytes

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


@pytest.mark.parametrize("count", [2, 3, 8, 64])
@pytest.mark.parametrize(("kind", "passes"), [("all_reduce", 2), ("reduce_scatter", 1), ("all_gather", 1)])
def test_bytes_sent_by_ring_are_those_of_its_steps(kind: str, passes: int, count: int) -> None:
    elements = 7 * 64 * 3
    sent = [sent_by_ring(kind, elements, device, count) for device in range(count)]
    assert sum(sent) == passes * elements * (count - 1)
    assert max(sent) - min(sent) <= 2
    if count <= 8:
        steps = ring(kind, [[0.0] * elements] * count)
        assert [FLOAT_BYTES * each for each in sent] == list(steps[-1].sent)


def test_broadcast_is_passed_on_by_all_but_the_last_device() -> None:
    assert [sent_by_ring("broadcast", 10, device, 4, root=2) for device in range(4)] == [10, 0, 10, 10]
    assert sent_by_ring("send", 10, 1, 4) == 10


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters of sockets are read")
@pytest.mark.parametrize("count", [2, 4])
def test_kernel_counts_the_bytes_of_a_ring(count: int) -> None:
    """Measure the bytes that gloo's processes send for an all-reduce and an all-gather."""
    import torch.multiprocessing

    elements = 600_000 * count
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(count_socket_bytes, (count, elements, port, found), count)
    for _ in range(2 * count):
        kind, rank, sent = found.get()
        assert sent == pytest.approx(FLOAT_BYTES * sent_by_ring(kind, elements, rank, count), rel=0.03), (kind, rank)
