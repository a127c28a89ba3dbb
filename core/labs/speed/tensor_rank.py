"""One process of tensor parallelism: `python -m core.labs.speed.tensor_rank SHARE`. The work is transformers' own."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.labs.processes.serving import serve
from core.labs.speed.tensor_messages import LINES, Broke, Message, Share, Slice

if TYPE_CHECKING:
    import torch

    from core.models.network import Network

PATIENCE = timedelta(seconds=60)
"""How long one waits for another that does not come."""


def generated(share: Share) -> Slice:
    """Join the others, keep a part of the model, and write the prompt's greedy continuation with them."""
    import torch
    import torch.distributed as dist
    from transformers import AutoModelForCausalLM

    from core.models.tokenizers import load_tokenizer

    _join(share)
    torch.set_num_threads(1)
    network: Any = AutoModelForCausalLM.from_pretrained(
        share.folder, tp_plan="auto", dtype=getattr(torch, share.dtype), local_files_only=True
    )
    tokenizer: Any = load_tokenizer(Path(share.folder), False)
    ids = tokenizer(share.prompt, return_tensors="pt").input_ids.to(network.device)
    speeds: list[float] = []
    written = ids
    for _ in range(share.repeats + 1):
        began = time.perf_counter()
        written = _written(network, ids, share.tokens)
        speeds.append(share.tokens / (time.perf_counter() - began))
    dist.barrier()
    return Slice(_held(network), written[0, ids.shape[1] :].tolist(), speeds[1:])


def _join(share: Share) -> None:
    import torch
    import torch.distributed as dist

    rank, count = str(share.rank), str(share.processes)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(share.port))
    os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=count)
    on_cards = torch.cuda.device_count() >= share.processes
    dist.init_process_group(
        "nccl" if on_cards else "gloo", rank=share.rank, world_size=share.processes, timeout=PATIENCE
    )


def _written(network: Any, ids: torch.Tensor, tokens: int) -> torch.Tensor:
    """Ids [1, prompt + tokens]."""
    import torch

    with torch.inference_mode():
        written: torch.Tensor = network.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens
        )
        return written


def _held(network: Network) -> int:
    """Bytes of the parameters in this process."""
    from core.labs.processes.held import held

    return held(network.parameters())


def _work(share: Share, tell: Callable[[Message], None]) -> int:
    try:
        tell(generated(share))
    except Exception as error:
        traceback.print_exc()
        tell(Broke(f"{type(error).__name__}: {error}".splitlines()[0]))
        return 1
    return 0


if __name__ == "__main__":
    serve(Share, LINES, _work)
