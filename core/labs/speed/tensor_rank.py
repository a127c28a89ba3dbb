"""One tensor parallel process: `python -m core.labs.speed.tensor_rank JOB`. transformers does the work."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decodescope.core.labs.processes.lab_processes import run_job
from decodescope.core.labs.speed.tensor_messages import (
    LINES,
    Message,
    TensorParallelFailed,
    TensorParallelJob,
    TensorParallelResult,
)


def generate_in_parallel(job: TensorParallelJob) -> TensorParallelResult:
    """Join the other processes, load a part of the model, and generate the prompt's greedy continuation together."""
    import torch
    import torch.distributed as dist

    from decodescope.core.labs.processes.distributed import (
        generate_greedily,
        join_process_group,
        load_tensor_parallel,
        local_bytes,
    )
    from decodescope.core.models.tokenizers import load_tokenizer

    on_cards = torch.cuda.device_count() >= job.processes
    join_process_group(job.rank, job.processes, job.port, "nccl" if on_cards else "gloo")
    torch.set_num_threads(1)
    network = load_tensor_parallel(Path(job.folder), getattr(torch, job.dtype))
    tokenizer: Any = load_tokenizer(Path(job.folder), False)
    prompt = tokenizer(job.prompt, return_tensors="pt").input_ids.to(network.device)
    speeds: list[float] = []
    ids: list[int] = []
    for _ in range(job.repeats + 1):
        began = time.perf_counter()
        ids = generate_greedily(network, prompt, job.tokens)
        speeds.append(job.tokens / (time.perf_counter() - began))
    dist.barrier()
    return TensorParallelResult(local_bytes(network.parameters()), ids, speeds[1:])


def _work(job: TensorParallelJob, send_message: Callable[[Message], None]) -> int:
    try:
        send_message(generate_in_parallel(job))
    except Exception as error:
        traceback.print_exc()
        send_message(TensorParallelFailed(f"{type(error).__name__}: {error}".splitlines()[0]))
        return 1
    return 0


if __name__ == "__main__":
    run_job(TensorParallelJob, LINES, _work)
