"""One process of the lab: `python -m core.labs.scale.ranks.rank JOB`. Ends when whoever started it does."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from core.labs.scale.ranks.channel import end_with_parent, own_stdout
from core.labs.scale.ranks.expected import PIPELINES
from core.labs.scale.ranks.messages import Failed, Job, Message, Reached, encoded


class Teller:
    """Sends messages; whatever else is printed goes to stderr."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __call__(self, message: Message) -> None:
        """Send one at once."""
        self._stream.write(encoded(message))
        self._stream.flush()


def main(job: Job, tell: Teller) -> int:
    """Do as told. Gives back the exit code."""
    tell(Reached("starts"))
    try:
        runner(job.scheme)(job, tell)
    except Exception as error:
        traceback.print_exc()
        tell(Failed(f"{type(error).__name__}: {error}", _is_memory(error)))
        return 1
    return 0


def runner(scheme: str) -> Callable[[Job, Teller], None]:
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
    end_with_parent()
    teller = Teller(own_stdout())
    code = main(msgspec.json.decode(sys.argv[1], type=Job), teller)
    sys.stderr.flush()
    os._exit(code)  # threads of the backend are left as they are: nothing is lost with them
