"""One process of tensor parallelism: `python -m core.labs.speed.tensor_rank SHARE`. The work is transformers' own."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.labs.processes.process_loop import serve
from core.labs.speed.tensor_messages import (
    LINES,
    Message,
    TensorParallelFailed,
    TensorParallelJob,
    TensorParallelResult,
)


def generated(share: TensorParallelJob) -> TensorParallelResult:
    """Join the others, keep a part of the model, and write the prompt's greedy continuation with them."""
    import torch
    import torch.distributed as dist

    from core.labs.processes.process_group import join
    from core.labs.processes.shard_bytes import held
    from core.labs.processes.tensor_parallel import shared, written
    from core.models.tokenizers import load_tokenizer

    on_cards = torch.cuda.device_count() >= share.processes
    join(share.rank, share.processes, share.port, "nccl" if on_cards else "gloo")
    torch.set_num_threads(1)
    network = shared(Path(share.folder), getattr(torch, share.dtype))
    tokenizer: Any = load_tokenizer(Path(share.folder), False)
    prompt = tokenizer(share.prompt, return_tensors="pt").input_ids.to(network.device)
    speeds: list[float] = []
    ids: list[int] = []
    for _ in range(share.repeats + 1):
        began = time.perf_counter()
        ids = written(network, prompt, share.tokens)
        speeds.append(share.tokens / (time.perf_counter() - began))
    dist.barrier()
    return TensorParallelResult(held(network.parameters()), ids, speeds[1:])


def _work(share: TensorParallelJob, tell: Callable[[Message], None]) -> int:
    try:
        tell(generated(share))
    except Exception as error:
        traceback.print_exc()
        tell(TensorParallelFailed(f"{type(error).__name__}: {error}".splitlines()[0]))
        return 1
    return 0


if __name__ == "__main__":
    serve(TensorParallelJob, LINES, _work)
