"""Listening to the processes until all have counted, one has failed, or somebody wants it to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from core.errors import OutOfMemoryError, ScaleError
from core.labs.processes.lab_processes import LabProcesses
from core.labs.scale.ranks.rank_messages import LINES, BytesCounted, Message, MilestoneReached, RankFailed, RankJob
from resources.language import tr

_POLL_SECONDS, _EXIT_NOTICE_SECONDS = 0.1, 1.0
_RANK_MODULE = "core.labs.scale.ranks.rank"


@dataclass(frozen=True)
class Progress:
    """A process has come so far: `starts`, `alone`, `joins`, `step`. Ranks count from 0, steps from 1."""

    rank: int
    stage: str
    step: int
    steps: int
    process: int
    """The system's id of it."""


@dataclass
class RankWatcher:
    """Listens until every rank has counted, one has failed, or somebody wants it to stop."""

    jobs: Sequence[RankJob]
    cancel: threading.Event
    counted: dict[int, BytesCounted] = field(default_factory=dict)
    reached: dict[int, MilestoneReached] = field(default_factory=dict)

    def follow(self) -> Iterator[Progress]:
        """Progress of all. Raises ScaleError, OutOfMemoryError."""
        with LabProcesses(_RANK_MODULE, self.jobs, LINES) as ranks:
            while len(self.counted) < len(self.jobs) and not self.cancel.is_set():
                told = ranks.next_message(_POLL_SECONDS)
                match told:
                    case (rank, MilestoneReached() as reached):
                        self.reached[rank] = reached
                        yield Progress(rank, reached.stage, reached.step, self.jobs[rank].steps, ranks.ids[rank])
                    case (rank, BytesCounted() as counted):
                        self.counted[rank] = counted
                    case (rank, RankFailed() as failed):
                        ended = None if failed.is_out_of_memory else self._silently_ended_rank(rank, ranks)
                        raise (
                            self._failed_error(rank, failed, ranks) if ended is None else self._died_error(ended, ranks)
                        )
                    case (rank, None) if rank not in self.counted:
                        raise self._died_error(rank, ranks)

    def _silently_ended_rank(self, first: int, ranks: LabProcesses[Message]) -> int | None:
        """The process that ended without a word, if one did: another one may be quicker to tell that it lost the
        connection than the system is to tell of the end."""
        spoke, until = {first, *self.counted}, time.monotonic() + _EXIT_NOTICE_SECONDS
        while time.monotonic() < until:
            match ranks.next_message(_POLL_SECONDS):
                case (rank, RankFailed()):
                    spoke.add(rank)
                case (rank, None) if rank not in spoke:
                    return rank
        return None

    def _failed_error(self, rank: int, failed: RankFailed, ranks: LabProcesses[Message]) -> Exception:
        if failed.is_out_of_memory:
            return OutOfMemoryError(
                tr("Memory ended in process {rank} of {all}.").format(rank=rank + 1, all=len(self.jobs)),
                tr("Take fewer processes, or a smaller model."),
                ranks.stderr_tail(rank),
            )
        return ScaleError(
            tr("Process {rank} of {all} could not go on: {words}").format(
                rank=rank + 1, all=len(self.jobs), words=failed.message.splitlines()[0]
            ),
            tr("The others were ended; nothing is left running. Try it again."),
            ranks.stderr_tail(rank),
        )

    def _died_error(self, rank: int, ranks: LabProcesses[Message]) -> Exception:
        step = self.reached[rank].step if rank in self.reached else 0
        code = ranks.exit_code(rank)
        values = {"rank": rank + 1, "all": len(self.jobs), "step": step, "code": code}
        cause = (
            tr("Process {rank} of {all} ended in step {step}, with code {code}.")
            if step
            else tr("Process {rank} of {all} ended before the first step, with code {code}.")
        )
        remedy = tr("The others were ended; nothing is left running. Try it again.")
        return ScaleError(cause.format(**values), remedy, ranks.stderr_tail(rank))
