"""Prefill in chunks: a long prompt is read in several passes, so that a run can be stopped between them."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from core.caches.base import CacheBackend
from core.caches.tensors.continuation_probe import memory_kind
from core.decoding.forward.forward_pass import Forward, ForwardOutput
from core.models.loaded_model import LoadedModel

CHUNK_SECONDS = 0.25
"""How long the pass over one chunk should take."""
_MIN_CHUNK = 96
"""Smaller chunks read a prompt more slowly: 64 tokens by a fifth, 96 by a tenth, 256 not at all (135 M parameters)."""
_MAX_SINGLE_PASS = 64
"""A prompt of no more tokens is read in one pass."""
_FIRST_CHUNK_WORK = {"cpu": 1.5e10, "mps": 5e10}
_FIRST_CHUNK_WORK_GPU = 5e11
"""Tokens · parameters that a first chunk may cost, by device: about CHUNK_SECONDS of a slow one."""
_GROWTH = 4
"""How many times as long as the one before it a chunk may be."""
_SPEED_KEY = "prefill_tokens_per_second"


class PrefillStoppedError(Exception):
    """The user stopped the run before the prompt was read. The cache holds the part that was."""


class ChunkSizes:
    """Number of tokens for each chunk of a prompt, adapted to how fast the model reads.

    With `fixed` every chunk has that size. A `steady` run does not follow the clock: its sizes depend on the number of
    parameters alone.
    """

    def __init__(self, model: LoadedModel, fixed: int | None = None, *, steady: bool = False) -> None:
        self._model, self._fixed, self._steady = model, fixed, steady
        device = model.device.type
        work = _FIRST_CHUNK_WORK.get(device, _FIRST_CHUNK_WORK_GPU)
        self._size = max(_MIN_CHUNK, int(work / max(model.parameters, 1)))
        speed = None if steady else model.remembered.get(_SPEED_KEY)
        if speed:
            self._size = max(_MIN_CHUNK, int(speed * CHUNK_SECONDS))

    def next_size(self, remaining: int) -> int:
        """Size of the next chunk; a short rest is read with it."""
        if self._fixed is not None:
            return min(self._fixed, remaining)
        return remaining if remaining <= self._size + self._size // 2 else self._size

    def update(self, size: int, seconds: float) -> None:
        """Adapt to a chunk of `size` tokens that took `seconds`."""
        if self._fixed is not None or self._steady or seconds <= 0:
            return
        self._model.remembered[_SPEED_KEY] = size / seconds
        wanted = min(int(size * CHUNK_SECONDS / seconds), size * _GROWTH)
        self._size = max(_MIN_CHUNK, wanted - wanted % _MIN_CHUNK)


def prefill_in_chunks(
    read: Callable[[torch.Tensor], ForwardOutput],
    ids: torch.Tensor,
    sizes: ChunkSizes,
    is_cancelled: Callable[[], bool],
) -> list[ForwardOutput]:
    """Read ids [B, n] chunk by chunk and return the output of every pass.

    `is_cancelled` is called between passes. Raises PrefillStoppedError when it returns true.
    """
    outputs: list[ForwardOutput] = []
    while True:
        size = sizes.next_size(ids.shape[1])
        chunk, ids = ids[:, :size], ids[:, size:]
        begun = time.perf_counter()
        outputs.append(read(chunk))
        if not ids.shape[1]:
            return outputs
        if ids.device.type == "cuda":
            torch.cuda.synchronize(ids.device)
        sizes.update(size, time.perf_counter() - begun)
        if is_cancelled():
            raise PrefillStoppedError


def prefill_prompt(
    forward: Forward, ids: torch.Tensor, sizes: ChunkSizes, is_cancelled: Callable[[], bool], *, hidden: bool
) -> ForwardOutput:
    """Read a prompt [B, n] in chunks: logits [B, 1, V] behind its last token, hidden states of all of it."""
    outputs = prefill_in_chunks(lambda chunk: forward(chunk, hidden=hidden), ids, sizes, is_cancelled)
    if len(outputs) == 1 or not hidden:
        return outputs[-1]
    layers = zip(*(output.hidden for output in outputs if output.hidden is not None), strict=True)
    return ForwardOutput(outputs[-1].logits, tuple(torch.cat(layer, dim=1) for layer in layers))


def can_read_in_chunks(model: LoadedModel, backend: CacheBackend, forward: Forward, tokens: int) -> bool:
    """Whether reading a prompt of `tokens` in several passes can give the same scores as reading it in one.

    The model has to read several tokens behind others as it reads them one by one (`DecodingRun.reads_behind`).
    Not for states and memories of the model's own, nor for caches that change what later tokens see of earlier ones
    (quantized ones, sinks): there a chunk would see what one pass over all does not.
    """
    return (
        tokens > _MAX_SINGLE_PASS
        and forward.cache is not None
        and backend.exact
        and not (model.is_encoder_decoder or model.is_recurrent)
        and memory_kind(model) == "kept"
    )
