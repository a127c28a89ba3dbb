"""Recover from running out of memory during a run: free memory, report it, and continue with a smaller exact cache."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import torch

from decodescope.core import caches
from decodescope.core.caches.base import CacheBackend
from decodescope.core.caches.prefixes.prefix_store import PrefixStore
from decodescope.core.decoding.forward.graphed_pass import drop_graphs
from decodescope.core.errors import OutOfMemoryError
from decodescope.core.events import CacheMeasured, CachePlan, Event, Notice, TokenChosen
from decodescope.core.explain import words
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.request import Request
from decodescope.core.settings import resolve_settings
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import join_sentences, mark, tr, trn

Decode = Callable[[LoadedModel, Request, threading.Event], Iterator[Event]]


class EventFilter:
    """Filters the events of a repeated run. A second attempt generates the same text, so only new events are passed
    on.
    """

    def __init__(self) -> None:
        self.counts: Counter[type[Event]] = Counter()
        self.tokens: list[tuple[int, int]] = []
        """(sequence, id) of every emitted token."""
        self.cache_bytes = 0

    def filter_new(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield events that were not emitted before. Raises OutOfMemoryError if the second text differs from the
        first.
        """
        again: Counter[type[Event]] = Counter()
        for event in events:
            kind, again[type(event)] = type(event), again[type(event)] + 1
            if isinstance(event, CachePlan):  # another cache has another plan
                yield event
                continue
            if again[kind] <= self.counts[kind]:
                self._compare(event, again[kind] - 1)
                continue
            self._record(event)
            yield event

    def _record(self, event: Event) -> None:
        self.counts[type(event)] += 1
        if isinstance(event, TokenChosen):
            self.tokens.append((event.sequence, event.id))
        elif isinstance(event, CacheMeasured):
            self.cache_bytes = event.bytes

    def _compare(self, event: Event, index: int) -> None:
        if isinstance(event, TokenChosen) and (event.sequence, event.id) != self.tokens[index]:
            raise OutOfMemoryError(
                tr(
                    "Memory ran out, and restarting with another cache gave a different text: this "
                    "device does not always compute the same numbers."
                ),
                tr("Choose the offloaded cache from the start, or generate fewer tokens."),
            )


def with_fallback(
    model: LoadedModel, request: Request, cancel: threading.Event, decode: Decode, prefixes: PrefixStore | None = None
) -> Iterator[Event]:
    """Yield the events of `decode`. If memory runs out and the request allows it, retry with a smaller cache.

    After a Notice, the retry yields only events that were not emitted before. `prefixes` are dropped first. Raises the
    error of the last attempt.
    """
    seen_events, tried = EventFilter(), set[str]()
    while True:
        successor: CacheBackend | None = None
        try:
            yield from seen_events.filter_new(decode(model, request, cancel))
            return
        except Exception as error:
            if isinstance(error, OutOfMemoryError) or not is_out_of_memory(error):
                raise
            tried.add(request.cache)
            successor = next_smaller_cache(model, request, tried)
            if successor is None:
                raise
        # Free memory only here: before, the traceback still references the tensors of the failed attempt.
        freed = _free_memory(prefixes, (model, *request.drafters))
        yield _notice(model, successor, seen_events, freed)
        request = replace(request, cache=successor.name, cache_options={})


def next_smaller_cache(model: LoadedModel, request: Request, tried_caches: set[str]) -> CacheBackend | None:
    """Return the next backend to try; None if the user forbids it, the text would change, or none is left."""
    present = caches.registry.get(request.cache)
    if not request.memory_fallback or present is None or not present.exact:
        return None
    strategy = resolve_settings(model, replace(request, cache="dynamic"))[0]
    for backend in _fallback_caches():
        again = replace(request, cache=backend.name, cache_options={})
        fits = not backend.unsupported_reason(model, strategy.needs) and not strategy.unsupported_reason(model, again)
        if fits and backend.name not in tried_caches:
            return backend
    return None


def _fallback_caches() -> list[CacheBackend]:
    """Return the backends that need less device memory, in the order they are tried."""
    numbered = [(backend.rescue, backend) for backend in caches.registry.values() if backend.rescue is not None]
    return [backend for _, backend in sorted(numbered, key=lambda pair: pair[0])]


def _free_memory(prefixes: PrefixStore | None, models: Iterable[LoadedModel]) -> int:
    """Free all memory that can be freed; return the bytes of the dropped prefixes."""
    freed = 0
    for model in models:
        drop_graphs(model)
    if prefixes is not None:
        freed = prefixes.bytes
        prefixes.clear()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
    return freed


def _notice(model: LoadedModel, successor: CacheBackend, event_filter: EventFilter, freed: int) -> Notice:
    sentences = [_out_of_memory_text(model, event_filter)]
    if freed:
        sentences.append(tr("{size} of stored prefixes was freed.").format(size=words.size(freed)))
    going_on = tr("Continuing with the cache “{cache}” ({summary}); the text stays the same.")
    sentences.append(going_on.format(cache=tr(successor.title), summary=tr(successor.summary)))
    return Notice("memory_fallback", join_sentences(*sentences))


def _out_of_memory_text(model: LoadedModel, event_filter: EventFilter) -> str:
    """Return the sentence that says when memory ran out and how large the cache was, as far as known."""
    sentence = {
        (False, False): mark("{device} ran out of memory."),
        (True, False): mark("{device} ran out of memory after {tokens}."),
        (False, True): mark("{device} ran out of memory, with {size} in the cache."),
        (True, True): mark("{device} ran out of memory after {tokens}, with {size} in the cache."),
    }[bool(event_filter.tokens), bool(event_filter.cache_bytes)]
    count = len(event_filter.tokens)
    tokens = trn("{count} token", "{count} tokens", count).format(count=f"{count:,}")
    return tr(sentence).format(device=model.device, tokens=tokens, size=words.size(event_filter.cache_bytes))
