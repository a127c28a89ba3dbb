"""One process of the lab: `python -m core.labs.scale.ranks.rank JOB`. Ends when whoever started it does."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import BinaryIO

import msgspec

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
    """Train as told. Gives back the exit code."""
    tell(Reached("starts"))
    try:
        from core.labs.scale.ranks.training import train

        train(job, tell)
    except Exception as error:
        traceback.print_exc()
        tell(Failed(f"{type(error).__name__}: {error}", _is_memory(error)))
        return 1
    return 0


def _is_memory(error: Exception) -> bool:
    from core.device_memory import is_out_of_memory

    return is_out_of_memory(error)


def _end_with_parent() -> None:
    """Nothing is ever written to it: it ends when the other side does, however that came about."""
    sys.stdin.buffer.read()
    os._exit(2)


def _own_stdout() -> BinaryIO:
    """Where messages go; from here on nothing else does."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    teller = Teller(_own_stdout())
    code = main(msgspec.json.decode(sys.argv[1], type=Job), teller)
    sys.stderr.flush()
    os._exit(code)  # threads of the backend are left as they are: nothing is lost with them
