"""Logits after many beginnings of an answer, which share the cache of the prompt."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch

from decodescope.core.caches.base import CacheOperation
from decodescope.core.caches.tensors.cache_operations import crop, record_past, tokens_read
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.speculation.tree_support import supports_drafts
from decodescope.core.errors import CacheError
from decodescope.resources.language import tr

BATCH = 8
"""Beginnings that are read in one pass."""
_KEPT_READERS = 64
"""Caches of beginnings that are kept where they are read one by one."""
_COPY: frozenset[CacheOperation] = frozenset({"copy"})
_BATCHED: frozenset[CacheOperation] = frozenset({"copy", "reorder", "truncate"})


class PrefixReader:
    """Reads beginnings of the answer of a run; the prompt is read once.

    Where the model reads several tokens exactly as one by one and its cache can be cut, a pass reads a batch of
    beginnings after copies of the prompt, which are padded at their ends: later positions do not affect earlier
    ones. Otherwise each beginning continues a copy of the longest one that is known.
    """

    def __init__(self, run: DecodingRun) -> None:
        """Read the prompt. Raises CacheError if the cache cannot be copied, and the errors of a run."""
        self._run = run
        options = run.request.cache_options
        if reason := run.backend.unsupported_reason(run.model, _COPY, options):
            raise CacheError(
                tr("The texts cannot branch: {reason}").format(reason=reason), tr("Choose another cache or model.")
            )
        output, _ = run.prefill()
        self._first = output.last
        self._root = run.forward
        self._rows: Forward | None = None
        self._known: OrderedDict[tuple[int, ...], Forward] = OrderedDict()
        self.batch = BATCH if self._reads_batches() else 1
        """Number of beginnings that `logits` should be called with."""

    def logits(self, beginnings: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """Return the logits [B, V] after each beginning."""
        if len(beginnings) > 1 and all(beginnings) and self.batch > 1:
            return self._read_batch(beginnings)
        return torch.cat([self._read_one(ids) for ids in beginnings])

    def close(self) -> None:
        """Release the storages of the passes."""
        for forward in (self._root, self._rows, *self._known.values()):
            if forward is not None:
                forward.release_storages()

    def _reads_batches(self) -> bool:
        run, model = self._run, self._run.model
        can_cut = run.backend.unsupported_reason(model, _BATCHED, run.request.cache_options) is None
        return (
            can_cut and run.backend.exact and self._root.can_reorder and self._root.cache is not None
            and not (model.is_encoder_decoder or model.is_recurrent) and run.inputs.media is None
            and supports_drafts(model)
        )  # fmt: skip

    @torch.inference_mode()
    def _read_batch(self, beginnings: Sequence[tuple[int, ...]]) -> torch.Tensor:
        if self._rows is None:
            self._rows = self._root.fork()
            record_past(self._rows.cache, True)
            self._rows.expand(self.batch)
        longest = max(map(len, beginnings))
        filled = [*beginnings, *[beginnings[0]] * (self.batch - len(beginnings))]
        ids = torch.tensor([[*one, *one[-1:] * (longest - len(one))] for one in filled], device=self._run.device)
        logits = self._rows(ids, keep=0).logits
        crop(self._rows.cache, tokens_read(self._rows.cache) - longest)
        ends = torch.tensor([len(one) - 1 for one in beginnings], device=logits.device)
        return logits[torch.arange(len(beginnings), device=logits.device), ends]

    def _read_one(self, ids: tuple[int, ...]) -> torch.Tensor:
        if not ids:
            return self._first
        known = next((length for length in range(len(ids) - 1, 0, -1) if ids[:length] in self._known), 0)
        forward = (self._known[ids[:known]] if known else self._root).fork()
        output = forward(torch.tensor([ids[known:]], device=self._run.device))
        self._known[ids] = forward
        if len(self._known) > _KEPT_READERS:
            _, oldest = self._known.popitem(last=False)
            oldest.release_storages()
        return output.last
