"""A real step with and without ZeRO-R: partitioned checkpoints, a constant gradient buffer, and a record of all memory.

torch has no engine for these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from decodescope.core.labs.processes.distributed import join_process_group, load_tensor_parallel, local_shard
from decodescope.core.labs.scale.allocator_arena import Block
from decodescope.core.labs.scale.ranks.expected_load import FLOAT_BYTES
from decodescope.core.labs.scale.ranks.instrumentation import TrafficHook
from decodescope.core.labs.scale.ranks.rank_messages import ByteCounts, Message, MilestoneReached, RankJob, StepMemory
from decodescope.core.labs.scale.ranks.reference_training import (
    load_for_training,
    random_texts,
    relative_difference,
    text_loss,
)
from decodescope.core.labs.scale.ranks.residual_memory import BUFFER_BYTES
from decodescope.core.system.file_writing import temporary_folder

MIN_BLOCK_BYTES = 2048
"""Smaller blocks, of which there are thousands, are omitted; in bytes."""
_MARK = "held:"


def mark_memory(kind: str, tensors: Iterable[Tensor]) -> None:
    """Mark the memory of these tensors as being of a kind."""
    for tensor in tensors:
        with record_function(f"{_MARK}{kind}:{tensor.untyped_storage().data_ptr()}"):
            pass


def record_blocks(work: Callable[[], object]) -> list[Block]:
    """Return the blocks, sorted by start; time counts allocations and releases. Blocks never released last to the
    end.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    with temporary_folder() as folder:
        file = folder / "trace.json"
        profiler.export_chrome_trace(str(file))
        found = json.loads(file.read_bytes())["traceEvents"]
    memory_events = [event for event in found if event["name"] == "[memory]" or event["name"].startswith(_MARK)]
    return blocks_from_events(sorted(memory_events, key=lambda event: float(event["ts"])))


def blocks_from_events(events: Iterable[dict[str, Any]]) -> list[Block]:
    """Return the blocks of the profiler's events, which are sorted by time."""
    held: dict[int, tuple[int, int, str]] = {}
    found: list[Block] = []
    moment = 0
    for event in events:
        if event["name"] != "[memory]":
            _, kind, place = event["name"].split(":")
            if int(place) in held:
                start, size, _ = held[int(place)]
                held[int(place)] = (start, size, kind)
            continue
        place, size = event["args"]["Addr"], event["args"]["Bytes"]
        if size >= MIN_BLOCK_BYTES:
            held[place] = (moment, size, "other")
        elif size < 0 and place in held:
            start, taken, kind = held.pop(place)
            found.append(Block(start, moment, taken, kind))
        else:
            continue
        moment += 1
    found += [Block(start, moment, size, kind) for start, size, kind in held.values()]
    return sorted(found, key=lambda block: block.start)


class PartitionedCheckpoints:
    """Checkpoint function that keeps only a layer's input; if `is_partitioned`, only this process's part of it.

    `bytes`: total bytes kept.
    """

    def __init__(self, is_partitioned: bool) -> None:
        self._divided = is_partitioned
        self.bytes = 0

    def __call__(self, layer: Callable[..., object], *given: object) -> object:
        with saved_tensors_hooks(self._pack, self._unpack):
            return checkpoint(layer, *given, use_reentrant=True, preserve_rng_state=False)

    def _pack(self, tensor: Tensor) -> tuple[Tensor, torch.Size]:
        stored = _local_part(tensor) if self._divided else tensor
        self.bytes += stored.numel() * stored.element_size()
        mark_memory("checkpoint", [stored])
        return stored, tensor.shape

    def _unpack(self, packed: tuple[Tensor, torch.Size]) -> Tensor:
        stored, shape = packed
        if not self._divided:
            return stored
        whole = stored.new_empty(len(stored) * dist.get_world_size())
        dist.all_gather_into_tensor(whole, stored)
        return whole[: shape.numel()].view(shape)


def run_zero_r(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Run a step without ZeRO-R and the same step with it; nothing is updated."""
    ids = random_texts(load_for_training(job).model, 1, job.length + 1)[0]
    send_message(MilestoneReached("joins"))
    join_process_group(job.rank, job.processes, job.port)
    network = load_tensor_parallel(Path(job.folder), torch.float32).train()
    _run_step(network, ids, PartitionedCheckpoints(False), 0)  # warm-up for one-time allocations
    found: list[StepMemory] = []
    gradients: list[list[Tensor]] = []
    for number, is_on in enumerate((False, True)):
        send_message(MilestoneReached("step", number + 1))
        found.append(_record_step(network, ids, is_on))
        gradients.append(_gradients(network))
        network.zero_grad(set_to_none=True)
    send_message(
        ByteCounts(
            {}, {}, [], [], 0.0, difference=relative_difference(gradients[1], gradients[0]), memory_records=found
        )
    )
    dist.barrier()


def _record_step(network: PreTrainedModel, ids: Tensor, is_on: bool) -> StepMemory:
    checkpoints = PartitionedCheckpoints(is_on)
    squares: list[float] = []
    hook = TrafficHook()

    def work() -> None:
        with hook:
            squares.append(_run_step(network, ids, checkpoints, BUFFER_BYTES if is_on else 0))

    taken = record_blocks(work)
    buffer = sum(block.bytes for block in taken if block.kind == "buffer")
    sent = sum(hook.bytes.values()) if dist.get_world_size() > 1 else 0
    return StepMemory(checkpoints.bytes, buffer, sent, squares[0], taken)


def _run_step(network: Any, ids: Tensor, checkpoints: PartitionedCheckpoints, buffer: int) -> float:
    """Run forward and backward, and return the sum of squared gradients.

    The gradients pass through a buffer of `buffer` bytes, or through one of their full size for 0.
    """
    network.zero_grad(set_to_none=True)
    for layer in network.base_model.layers:
        layer.gradient_checkpointing, layer._gradient_checkpointing_func = True, checkpoints
    text_loss(network, ids).backward()
    gradients = _gradients(network)
    mark_memory("gradient", gradients)
    return sum(float(piece.square_().sum()) for piece in _fused_buffers(gradients, buffer // FLOAT_BYTES))


def _gradients(network: PreTrainedModel) -> list[Tensor]:
    """Return this process's gradients."""
    found = (local_shard(part.grad) for part in network.parameters())
    return [gradient for gradient in found if gradient is not None]


def _local_part(tensor: Tensor) -> Tensor:
    """Return this process's part of the tensor, split equally over the processes and padded at the end."""
    numbers, count, rank = tensor.reshape(-1), dist.get_world_size(), dist.get_rank()
    size = -(-len(numbers) // count)
    mine = numbers[rank * size : (rank + 1) * size]
    return torch.cat([mine, mine.new_zeros(size - len(mine))])


def _fused_buffers(gradients: list[Tensor], size: int) -> Iterator[Tensor]:
    """Copy the gradients into one buffer and yield it whenever it is full: all at once for size 0, else `size` numbers
    at a time.
    """
    whole = sum(gradient.numel() for gradient in gradients)
    room = torch.empty(min(size or whole, whole))
    mark_memory("buffer", [room])
    filled = 0
    for gradient in gradients:
        rest = gradient.reshape(-1)
        while len(rest):
            piece = rest[: len(room) - filled]
            room[filled : filled + len(piece)] = piece
            filled, rest = filled + len(piece), rest[len(piece) :]
            if filled == len(room):
                yield room
                filled = 0
    if filled:
        yield room[:filled]
