"""One process of the lab: `python -m core.labs.scale.ranks.rank JOB`. Ends when whoever started it does."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from core.labs.processes.process_loop import serve
from core.labs.scale.ranks.expected_load import PIPELINES
from core.labs.scale.ranks.rank_messages import LINES, Message, MilestoneReached, RankFailed, RankJob

Tell = Callable[[Message], None]


def main(job: RankJob, tell: Tell) -> int:
    """Do as told. Gives back the exit code."""
    tell(MilestoneReached("starts"))
    try:
        runner(job.scheme)(job, tell)
    except Exception as error:
        traceback.print_exc()
        tell(RankFailed(f"{type(error).__name__}: {error}", _is_memory(error)))
        return 1
    return 0


def runner(scheme: str) -> Callable[[RankJob, Tell], None]:
    """What a scheme is run by; torch is imported with it."""
    if scheme == "pipedream":
        from core.labs.scale.ranks.pipedream import run as dream

        return dream
    if scheme == "tensor":
        from core.labs.scale.ranks.tensor import run as share

        return share
    if scheme == "zeror":
        from core.labs.scale.ranks.residual import run as remember

        return remember
    if scheme in PIPELINES:
        from core.labs.scale.ranks.pipeline import run

        return run
    from core.labs.scale.ranks.training import train

    return train


def _is_memory(error: Exception) -> bool:
    from core.device_memory import is_out_of_memory

    return is_out_of_memory(error)


if __name__ == "__main__":
    serve(RankJob, LINES, main)
