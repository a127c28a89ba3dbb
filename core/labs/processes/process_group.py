"""Processes that share one piece of work meet."""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as dist

COLLECTIVE_TIMEOUT = timedelta(seconds=60)
"""How long a collective waits for a process that does not come."""


def join_process_group(rank: int, processes: int, port: int, backend: str = "gloo") -> None:
    """Meet the others at that port of this machine. Raises RuntimeError where one does not come in time."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes))
    dist.init_process_group(backend, rank=rank, world_size=processes, timeout=COLLECTIVE_TIMEOUT)
