"""ZeRO-R for real, beside the same step without it: checkpoints that tensor parallel processes share out, a buffer of
constant size for all gradients, and every block of memory taken down. torch has no engine for these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from core.labs.processes.process_group import join
from core.labs.processes.shard_bytes import local
from core.labs.processes.tensor_parallel import shared
from core.labs.scale.ranks.memory_profile import note, recorded
from core.labs.scale.ranks.predicted_bytes import FLOAT
from core.labs.scale.ranks.rank_messages import BytesCounted, MemoryRecorded, Message, MilestoneReached, RankJob
from core.labs.scale.ranks.rank_setup import loaded, texts
from core.labs.scale.ranks.residual_memory import BUFFER
from core.labs.scale.ranks.single_process import difference, loss_of
from core.labs.scale.ranks.traffic_counter import TrafficHook


class Checkpoints:
    """Called in place of a layer, which keeps its input alone; of that, where it is `divided`, this process's share.
    `bytes` kept altogether."""

    def __init__(self, divided: bool) -> None:
        self._divided = divided
        self.bytes = 0

    def __call__(self, layer: Callable[..., object], *given: object) -> object:
        with saved_tensors_hooks(self._pack, self._unpack):
            return checkpoint(layer, *given, use_reentrant=True, preserve_rng_state=False)

    def _pack(self, tensor: Tensor) -> tuple[Tensor, torch.Size]:
        kept = _share(tensor) if self._divided else tensor
        self.bytes += kept.numel() * kept.element_size()
        note("checkpoint", [kept])
        return kept, tensor.shape

    def _unpack(self, packed: tuple[Tensor, torch.Size]) -> Tensor:
        kept, shape = packed
        if not self._divided:
            return kept
        whole = kept.new_empty(len(kept) * dist.get_world_size())
        dist.all_gather_into_tensor(whole, kept)
        return whole[: shape.numel()].view(shape)


def run(job: RankJob, tell: Callable[[Message], None]) -> None:
    """A step without, then the same with it; nothing is learned."""
    ids = texts(loaded(job).model, 1, job.length + 1)[0]
    tell(MilestoneReached("joins"))
    join(job.rank, job.processes, job.port)
    network = shared(Path(job.folder), torch.float32).train()
    _step(network, ids, Checkpoints(False), 0)  # whatever is made once is made
    found: list[MemoryRecorded] = []
    gradients: list[list[Tensor]] = []
    for number, is_on in enumerate((False, True)):
        tell(MilestoneReached("step", number + 1))
        found.append(_remembered(network, ids, is_on))
        gradients.append(_gradients(network))
        network.zero_grad(set_to_none=True)
    tell(BytesCounted({}, {}, [], [], 0.0, difference=difference(gradients[1], gradients[0]), remembered=found))
    dist.barrier()


def _remembered(network: PreTrainedModel, ids: Tensor, is_on: bool) -> MemoryRecorded:
    kept = Checkpoints(is_on)
    squares: list[float] = []
    hook = TrafficHook()

    def work() -> None:
        with hook:
            squares.append(_step(network, ids, kept, BUFFER if is_on else 0))

    taken = recorded(work)
    buffer = sum(block.bytes for block in taken if block.kind == "buffer")
    sent = sum(hook.bytes.values()) if dist.get_world_size() > 1 else 0
    return MemoryRecorded(kept.bytes, buffer, sent, squares[0], taken)


def _step(network: Any, ids: Tensor, kept: Checkpoints, buffer: int) -> float:
    """Forward, backward, the sum of all gradients' squares through a buffer: of `buffer` bytes, or, with 0, of all."""
    network.zero_grad(set_to_none=True)
    for layer in network.base_model.layers:
        layer.gradient_checkpointing, layer._gradient_checkpointing_func = True, kept
    loss_of(network, ids).backward()
    gradients = _gradients(network)
    note("gradient", gradients)
    return sum(float(piece.square_().sum()) for piece in _pieces(gradients, buffer // FLOAT))


def _gradients(network: PreTrainedModel) -> list[Tensor]:
    """This process's."""
    found = (local(part.grad) for part in network.parameters())
    return [gradient for gradient in found if gradient is not None]


def _share(tensor: Tensor) -> Tensor:
    """One of as many equal parts as there are processes; the last ones may be filled up."""
    numbers, count, rank = tensor.reshape(-1), dist.get_world_size(), dist.get_rank()
    size = -(-len(numbers) // count)
    mine = numbers[rank * size : (rank + 1) * size]
    return torch.cat([mine, mine.new_zeros(size - len(mine))])


def _pieces(gradients: list[Tensor], size: int) -> Iterator[Tensor]:
    """All gradients, copied into one buffer: at once, or so many numbers after so many."""
    whole = sum(gradient.numel() for gradient in gradients)
    room = torch.empty(min(size or whole, whole))
    note("buffer", [room])
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
