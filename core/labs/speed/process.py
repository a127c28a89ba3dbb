"""The process that measures: `python -m core.labs.speed.process JOB`. Ends when whoever started it does."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator

import msgspec

from core.errors import TokenscopeError
from core.labs.scale.ranks.channel import end_with_parent, own_stdout
from core.labs.speed.events import Event
from core.labs.speed.messages import Failed, Job, encoded
from resources import language


def told(job: Job) -> Iterator[Event | Failed]:
    """Everything that the measurement says, its failure included."""
    try:
        import torch

        from core.labs.speed.rows import measuring

        language.use(job.language)
        torch.set_num_threads(job.asked.threads or os.cpu_count() or 1)
        yield from measuring(job.asked, threading.Event())
    except TokenscopeError as error:
        yield Failed(error.cause, error.remedy, error.details)
    except Exception as error:
        yield Failed(f"{type(error).__name__}: {error}".splitlines()[0], "", traceback.format_exc())


if __name__ == "__main__":
    end_with_parent()
    stream = own_stdout()
    for message in told(msgspec.json.decode(sys.argv[1], type=Job)):
        stream.write(encoded(message))
        stream.flush()
    sys.stderr.flush()
    os._exit(0)
