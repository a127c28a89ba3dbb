"""One process of the lab: `python -m core.labs.scale.ranks.rank JOB`. Ends when whoever started it does."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from core.labs.processes.serving import serve
from core.labs.scale.ranks.expected import PIPELINES
from core.labs.scale.ranks.messages import LINES, Failed, Job, Message, Reached

Tell = Callable[[Message], None]


def main(job: Job, tell: Tell) -> int:
    """Do as told. Gives back the exit code."""
    tell(Reached("starts"))
    try:
        runner(job.scheme)(job, tell)
    except Exception as error:
        traceback.print_exc()
        tell(Failed(f"{type(error).__name__}: {error}", _is_memory(error)))
        return 1
    return 0


def runner(scheme: str) -> Callable[[Job, Tell], None]:
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
        from core.labs.scale.ranks.piping import run

        return run
    from core.labs.scale.ranks.training import train

    return train


def _is_memory(error: Exception) -> bool:
    from core.device_memory import is_out_of_memory

    return is_out_of_memory(error)


if __name__ == "__main__":
    serve(Job, LINES, main)
