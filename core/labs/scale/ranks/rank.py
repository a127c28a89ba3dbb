"""One process of the lab: `python -m core.labs.scale.ranks.rank JOB`. It ends when its parent ends."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from decodescope.core.labs.processes.lab_processes import run_job
from decodescope.core.labs.scale.ranks.expected_load import PIPELINES
from decodescope.core.labs.scale.ranks.rank_messages import LINES, Message, MilestoneReached, RankFailed, RankJob

SendMessage = Callable[[Message], None]


def main(job: RankJob, send_message: SendMessage) -> int:
    """Run the job and return the exit code."""
    send_message(MilestoneReached("starts"))
    try:
        runner_for(job.scheme)(job, send_message)
    except Exception as error:
        traceback.print_exc()
        send_message(RankFailed(f"{type(error).__name__}: {error}", _is_memory_error(error)))
        return 1
    return 0


def runner_for(scheme: str) -> Callable[[RankJob, SendMessage], None]:
    """Return the function that runs a scheme; it imports torch."""
    if scheme == "pipedream":
        from decodescope.core.labs.scale.ranks.pipedream import train_pipedream as dream

        return dream
    if scheme == "tensor":
        from decodescope.core.labs.scale.ranks.tensor_parallel_rank import train_tensor_parallel as share

        return share
    if scheme == "zeror":
        from decodescope.core.labs.scale.ranks.residual import run_zero_r as remember

        return remember
    if scheme in PIPELINES:
        from decodescope.core.labs.scale.ranks.pipeline import train_pipeline

        return train_pipeline
    from decodescope.core.labs.scale.ranks.training import train_data_parallel

    return train_data_parallel


def _is_memory_error(error: Exception) -> bool:
    from decodescope.core.system.device_memory import is_out_of_memory

    return is_out_of_memory(error)


if __name__ == "__main__":
    run_job(RankJob, LINES, main)
