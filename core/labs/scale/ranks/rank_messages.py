"""Messages between the lab and its processes: one line of JSON each."""

from __future__ import annotations

import msgspec

from decodescope.core.labs.processes.lab_processes import JsonLines
from decodescope.core.labs.scale.allocator_arena import Block
from decodescope.core.labs.scale.pipeline_schedule import Box, Options


class RankJob(msgspec.Struct, frozen=True):
    """The job of one process. Ranks count from 0; rank 0 also trains alone, for comparison."""

    folder: str
    """Folder of the model."""
    scheme: str
    rank: int
    processes: int
    port: int
    steps: int
    length: int
    options: Options = Options()
    is_tied: bool = False
    """Whether the input embedding and the output matrix are tied."""


class MilestoneReached(msgspec.Struct, frozen=True):
    """A process has reached a milestone: `starts`, `alone`, `joins`, `step`; `step` counts from 1."""

    stage: str
    step: int = 0


class SampledTexts(msgspec.Struct, frozen=True):
    """Text generated together: its ids, those of one process (from rank 0), the text with its prompt, and the bytes a
    rank sent.
    """

    ids: list[int]
    alone: list[int]
    text: str
    sent: int


class StepMemory(msgspec.Struct, frozen=True):
    """Memory of one training step: bytes of the layers' checkpoints and of the gradient buffer, bytes sent, the sum of
    the squared gradients, and every memory block.
    """

    checkpoints: int
    buffer: int
    sent: int
    squares: float
    blocks: list[Block]


class ByteCounts(msgspec.Struct):
    """Bytes that a rank held in its last step, by part, and bytes sent by its collectives, by operation."""

    parts: dict[str, int]
    traffic: dict[str, int]
    losses: list[float]
    """Losses, from the ranks that have them."""
    single_process_losses: list[float]
    """Losses of one process with the whole batch; rank 0 sends those of all steps."""
    seconds: float
    """Duration of the last step."""
    difference: float = 0.0
    """Difference of the gradients from those of one process, relative to the largest."""
    boxes: list[Box] = []
    """The work done in the last step, in milliseconds of the machine's clock."""
    costs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Milliseconds that one process needs for a micro-batch's forward, backward, and for an update."""
    unstashed_error: float = 0.0
    """Unstashed PipeDream: how far its gradients are from those of the forward pass's weights."""
    sampled_texts: SampledTexts | None = None
    """Text generated with tensor parallelism."""
    memory_records: list[StepMemory] = []
    """ZeRO-R: a step without it, and one with it."""


class RankFailed(msgspec.Struct, frozen=True):
    """A process failed."""

    message: str
    is_out_of_memory: bool


Message = MilestoneReached | ByteCounts | RankFailed
LINES = JsonLines[Message](MilestoneReached, ByteCounts, RankFailed)
