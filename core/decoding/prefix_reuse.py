"""Starting a run from what an earlier one has read, and leaving its own cache behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transformers.cache_utils import Cache

from core.caches.base import CacheBackend
from core.caches.prefixes.prefix_store import PrefixStore
from core.caches.tensors.cache_editing import record_past, tokens_read
from core.caches.tensors.continuation_probe import memory_kind
from core.decoding.forward.forward_pass import Forward
from core.decoding.prompt_inputs import PromptInputs
from core.decoding.strategy_protocol import DecodingStrategy
from core.models.loaded_model import LoadedModel
from core.request import Request


class PrefixReuse:
    """One run's dealings with the prefix store; without a store they come to nothing."""

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        backend: CacheBackend,
        strategy: DecodingStrategy,
        store: PrefixStore | None,
        make_cache: Callable[[], Cache | None],
    ) -> None:
        """`make_cache` makes an empty cache as the run's own."""
        self._store = store
        self._model, self._backend, self._options, self._fresh = model, backend, request.cache_options, make_cache
        self._branches = "reorder" in strategy.needs
        self._drafts = strategy.speculates

    def load_prefix(self, forward: Forward, inputs: PromptInputs) -> int:
        """Give `forward` the longest beginning that is kept of what a run begins with; how many tokens that is. One
        that ends within a picture is of no use: the picture is read whole."""
        if self._store is None or self._is_unsupported(forward):
            return 0
        found = self._store.find(self._model, self._backend, self._options, inputs.cache_keys, self._fresh)
        if found is None or (inputs.media is not None and found.length < inputs.media.required_positions):
            return 0
        record_past(found.cache, self._drafts)
        forward.continue_from(found.cache)
        return found.length - inputs.offset

    def store_prompt(self, forward: Forward, ids: Sequence[int], rows: int) -> None:
        """Keep a copy of what has read the prompt, before the run takes it apart into several rows.

        A run of one row keeps its whole text at its end instead, unless a state cannot be cut back to the prompt.
        """
        if self._store is None or self._is_unsupported(forward):
            return
        if rows > 1 or self._branches or self._model.is_recurrent:
            self._store.put(self._model, self._backend, self._options, ids, self._backend.copy(forward.cache))

    def store_text(self, forward: Forward, ids: Sequence[int], rows: int) -> None:
        """Keep the cache of a finished run of one row; the last token of its text `ids` has not been read."""
        if self._store is None or self._is_unsupported(forward) or rows > 1 or self._branches:
            return
        read = len(ids) - 1 if self._model.is_recurrent else tokens_read(forward.cache)
        if read <= len(ids):
            self._store.put(self._model, self._backend, self._options, ids[:read], forward.cache)

    def _is_unsupported(self, forward: Forward) -> bool:
        """An encoder–decoder's text begins anew each time; a memory only the model knows cannot be copied."""
        return self._model.is_encoder_decoder or forward.cache is None or memory_kind(self._model) == "inside"
