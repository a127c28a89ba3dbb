"""Prefill in chunks: read a long prompt in several passes, so that a run can be stopped in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from transformers.cache_utils import Cache

from decodescope.core.caches.base import CacheBackend
from decodescope.core.caches.prefixes.prefix_store import PrefixStore
from decodescope.core.caches.tensors.cache_operations import record_past, tokens_read
from decodescope.core.caches.tensors.continuation_probe import memory_kind
from decodescope.core.decoding.forward.forward_pass import Forward, ForwardOutput
from decodescope.core.decoding.prompt_inputs import PromptInputs
from decodescope.core.decoding.run_preparation import DecodingStrategy
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.request import Request
from decodescope.core.system.gpu import synchronize

CHUNK_SECONDS = 0.25
"""Target duration of one chunk."""
_MIN_CHUNK = 96
"""Minimum chunk size. Small chunks are slower: 64 tokens by a fifth, 96 by a tenth, 256 not at all (135 M parameters).
"""
_MAX_SINGLE_PASS = 64
"""Prompts of at most this many tokens are read in one pass."""
_FIRST_CHUNK_WORK = {"cpu": 1.5e10, "mps": 5e10}
_FIRST_CHUNK_WORK_GPU = 5e11
"""Tokens · parameters of the first chunk by device: about CHUNK_SECONDS on a slow one."""
_GROWTH = 4
"""Maximum growth factor from one chunk to the next."""
_SPEED_KEY = "prefill_tokens_per_second"


class PrefillStoppedError(Exception):
    """The user stopped the run during prefill. The cache contains the part that was read."""


class ChunkSizes:
    """Chunk sizes of a prompt in tokens, adapted to the model's speed.

    With `fixed` every chunk has that size. With `steady` sizes depend on the number of parameters alone, not on time.
    """

    def __init__(self, model: LoadedModel, fixed: int | None = None, *, steady: bool = False) -> None:
        self._model, self._fixed, self._steady = model, fixed, steady
        device = model.device.type
        work = _FIRST_CHUNK_WORK.get(device, _FIRST_CHUNK_WORK_GPU)
        self._size = max(_MIN_CHUNK, int(work / max(model.parameters, 1)))
        speed = None if steady else model.strategy_data.get(_SPEED_KEY)
        if speed:
            self._size = max(_MIN_CHUNK, int(speed * CHUNK_SECONDS))

    def next_size(self, remaining: int) -> int:
        """Return the size of the next chunk; a short remainder is included."""
        if self._fixed is not None:
            return min(self._fixed, remaining)
        return remaining if remaining <= self._size + self._size // 2 else self._size

    def update(self, size: int, seconds: float) -> None:
        """Adapt to a chunk of `size` tokens that took `seconds`."""
        if self._fixed is not None or self._steady or seconds <= 0:
            return
        self._model.strategy_data[_SPEED_KEY] = size / seconds
        target_size = min(int(size * CHUNK_SECONDS / seconds), size * _GROWTH)
        self._size = max(_MIN_CHUNK, target_size - target_size % _MIN_CHUNK)


def prefill_in_chunks(
    run_chunk: Callable[[torch.Tensor], ForwardOutput],
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
        outputs.append(run_chunk(chunk))
        if not ids.shape[1]:
            return outputs
        synchronize(ids.device)
        sizes.update(size, time.perf_counter() - begun)
        if is_cancelled():
            raise PrefillStoppedError


def prefill_prompt(
    forward: Forward, ids: torch.Tensor, sizes: ChunkSizes, is_cancelled: Callable[[], bool], *, hidden: bool
) -> ForwardOutput:
    """Read a prompt [B, n] in chunks; return logits [B, 1, V] after its last token and, if requested, all hidden
    states.
    """
    outputs = prefill_in_chunks(lambda chunk: forward(chunk, hidden=hidden), ids, sizes, is_cancelled)
    if len(outputs) == 1 or not hidden:
        return outputs[-1]
    layers = zip(*(output.hidden for output in outputs if output.hidden is not None), strict=True)
    return ForwardOutput(outputs[-1].logits, tuple(torch.cat(layer, dim=1) for layer in layers))


def can_read_in_chunks(model: LoadedModel, backend: CacheBackend, forward: Forward, tokens: int) -> bool:
    """Return whether reading a prompt of `tokens` in several passes gives the same scores as one pass.

    The model must read several tokens after others exactly as one by one (`DecodingRun.supports_chunked_prefill`).
    Recurrent states, custom caches and caches that change what later tokens see of earlier ones (quantized, sinks) are
    excluded: a chunk would see less than one pass does.
    """
    return (
        tokens > _MAX_SINGLE_PASS
        and forward.cache is not None
        and backend.exact
        and not (model.is_encoder_decoder or model.is_recurrent)
        and memory_kind(model) == "kept"
    )


class PrefixReuse:
    """Prefix reuse of one run; does nothing without a store."""

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        backend: CacheBackend,
        strategy: DecodingStrategy,
        store: PrefixStore | None,
        make_cache: Callable[[], Cache | None],
    ) -> None:
        """Prepare reuse; `make_cache` creates an empty cache of the run's kind."""
        self._store = store
        self._model, self._backend, self._options, self._make_cache = model, backend, request.cache_options, make_cache
        self._branches = "reorder" in strategy.needs
        self._drafts = strategy.speculates

    def load_prefix(self, forward: Forward, inputs: PromptInputs) -> int:
        """Load the longest cached prefix of the prompt into `forward`; return its length in tokens.

        A prefix that ends inside an image is not used: an image is read completely.
        """
        if self._store is None or self._is_unsupported(forward):
            return 0
        found = self._store.find(self._model, self._backend, self._options, inputs.cache_keys, self._make_cache)
        if found is None or (inputs.media is not None and found.length < inputs.media.required_positions):
            return 0
        record_past(found.cache, self._drafts)
        forward.continue_from(found.cache)
        return found.length - inputs.offset

    def store_prompt(self, forward: Forward, ids: Sequence[int], rows: int) -> None:
        """Store a copy of the prompt's cache before the run splits it into several rows.

        A run of one row stores its full text at the end instead, unless a state cannot be cut back to the prompt.
        """
        if self._store is None or self._is_unsupported(forward):
            return
        if rows > 1 or self._branches or self._model.is_recurrent:
            self._store.put(self._model, self._backend, self._options, ids, self._backend.copy(forward.cache))

    def store_text(self, forward: Forward, ids: Sequence[int], rows: int) -> None:
        """Store the cache of a finished run of one row; the last token of its text `ids` has not been read."""
        if self._store is None or self._is_unsupported(forward) or rows > 1 or self._branches:
            return
        read = len(ids) - 1 if self._model.is_recurrent else tokens_read(forward.cache)
        if read <= len(ids):
            self._store.put(self._model, self._backend, self._options, ids[:read], forward.cache)

    def _is_unsupported(self, forward: Forward) -> bool:
        """Return whether reuse is impossible: an encoder–decoder's text starts from scratch, and a custom cache cannot
        be copied.
        """
        return self._model.is_encoder_decoder or forward.cache is None or memory_kind(self._model) == "inside"
