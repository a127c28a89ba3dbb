"""What the lab tells its processes, and what they tell it: one line of JSON each."""

from __future__ import annotations

import msgspec

from core.labs.processes.lab_processes import JsonLines
from core.labs.scale.allocator_arena import Block
from core.labs.scale.pipeline_schedule import Box, Options


class RankJob(msgspec.Struct, frozen=True):
    """What one process is to do. Ranks count from 0; rank 0 also trains alone, for comparison."""

    folder: str
    """Of the model."""
    scheme: str
    rank: int
    processes: int
    port: int
    steps: int
    length: int
    options: Options = Options()
    is_tied: bool = False
    """Whether the table of tokens is the matrix that gives words, too."""


class MilestoneReached(msgspec.Struct, frozen=True):
    """A process has come to a stage: `starts`, `alone`, `joins`, `step`; `step` counts from 1."""

    stage: str
    step: int = 0


class SampledTexts(msgspec.Struct, frozen=True):
    """What was written together: ids, those of one process (from rank 0), the text with what was given, and the bytes
    that a rank sent meanwhile."""

    ids: list[int]
    alone: list[int]
    text: str
    sent: int


class MemoryRecorded(msgspec.Struct, frozen=True):
    """Of a step of training: bytes of the layers' checkpoints and of the buffer that gradients are copied into, bytes
    sent, the sum of the gradients' squares, and every block of memory."""

    checkpoints: int
    buffer: int
    sent: int
    squares: float
    blocks: list[Block]


class BytesCounted(msgspec.Struct):
    """What a rank held in its last step, in bytes by part, and what went through its collectives, by operation."""

    parts: dict[str, int]
    traffic: dict[str, int]
    losses: list[float]
    """From those ranks that have them."""
    single_process_losses: list[float]
    """Of one process with the whole batch; from rank 0 all steps."""
    seconds: float
    """The last step."""
    difference: float = 0.0
    """Of the gradients from those of one process, as a share of the greatest."""
    boxes: list[Box] = []
    """What was done when in the last step, in milliseconds on the machine's clock."""
    costs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Milliseconds that one process takes for a micro-batch forward, backward, and for an update."""
    unstashed_error: float = 0.0
    """Of PipeDream without stashing: how far its gradients are from those of the weights that went forward."""
    sampled_texts: SampledTexts | None = None
    """Of tensor parallelism."""
    memory_records: list[MemoryRecorded] = []
    """Of ZeRO-R: a step without it, and one with it."""


class RankFailed(msgspec.Struct, frozen=True):
    """A process could not go on."""

    message: str
    is_out_of_memory: bool


Message = MilestoneReached | BytesCounted | RankFailed
LINES = JsonLines[Message](MilestoneReached, BytesCounted, RankFailed)
