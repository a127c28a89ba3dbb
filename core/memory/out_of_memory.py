"""When memory ends in the middle of a run: free it, say so, and go on with a cheaper cache that writes the same."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from core import caches
from core.caches.base import CacheBackend
from core.caches.prefixes.prefix_store import PrefixStore
from core.errors import OutOfMemoryError
from core.events import CacheMeasured, CachePlan, Event, Notice, TokenChosen
from core.explain import words
from core.models.loaded_model import LoadedModel
from core.request import Request
from core.settings import resolve_settings
from core.system.device_memory import is_out_of_memory
from resources.language import join_sentences, mark, tr, trn

Decode = Callable[[LoadedModel, Request, threading.Event], Iterator[Event]]


class EventFilter:
    """What a reader has heard of a run. A second attempt writes the same; of it only what is new is passed on."""

    def __init__(self) -> None:
        self.counts: Counter[type[Event]] = Counter()
        self.tokens: list[tuple[int, int]] = []
        """(sequence, id) of every token told."""
        self.cache_bytes = 0

    def filter_new(self, events: Iterator[Event]) -> Iterator[Event]:
        """Pass on what was not told yet. Raises OutOfMemoryError when the second text is not the first."""
        again: Counter[type[Event]] = Counter()
        for event in events:
            kind, again[type(event)] = type(event), again[type(event)] + 1
            if isinstance(event, CachePlan):  # another cache, another plan
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
                    "Memory ran out, and starting again with another cache gave another text: on this device the same "
                    "computation does not always give the same numbers."
                ),
                tr("Choose the offloaded cache from the start, or write fewer tokens."),
            )


def with_fallback(
    model: LoadedModel, request: Request, cancel: threading.Event, decode: Decode, prefixes: PrefixStore | None = None
) -> Iterator[Event]:
    """The events of `decode`; when memory ends and the request allows it, those of another attempt follow, less what
    was told already, after a Notice. `prefixes` are given up first. Raises what ended the last attempt."""
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
        # Only here, when nothing refers to the error any more, is what it held on to free.
        freed = _free_memory(prefixes)
        yield _notice(model, request, successor, seen_events, freed)
        request = replace(request, cache=successor.name, cache_options={})


def next_smaller_cache(model: LoadedModel, request: Request, tried: set[str]) -> CacheBackend | None:
    """The next back end to try; None when the user forbids it, the text would change, or none is left."""
    present = caches.registry.get(request.cache)
    if not request.memory_fallback or present is None or not present.exact:
        return None
    strategy = resolve_settings(model, replace(request, cache="dynamic"))[0]
    for backend in _fallback_caches():
        again = replace(request, cache=backend.name, cache_options={})
        fits = not backend.unsupported_reason(model, strategy.needs) and not strategy.why_not(model, again)
        if fits and backend.name not in tried:
            return backend
    return None


def _fallback_caches() -> list[CacheBackend]:
    """Back ends that need less of the device's memory, in the order they are tried."""
    numbered = [(backend.rescue, backend) for backend in caches.registry.values() if backend.rescue is not None]
    return [backend for _, backend in sorted(numbered, key=lambda pair: pair[0])]


def _free_memory(prefixes: PrefixStore | None) -> int:
    """Give back what can be given back; bytes that kept prefixes took."""
    freed = 0
    if prefixes is not None:
        freed = prefixes.bytes
        prefixes.clear()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()
    return freed


def _notice(model: LoadedModel, request: Request, successor: CacheBackend, seen: EventFilter, freed: int) -> Notice:
    said = [_out_of_memory_text(model, seen)]
    if freed:
        said.append(tr("{size} of kept prefixes were freed.").format(size=words.size(freed)))
    going_on = tr("Going on with the cache “{cache}” ({summary}); the text stays as it is.")
    said.append(going_on.format(cache=tr(successor.title), summary=tr(successor.summary)))
    return Notice("memory_fallback", join_sentences(*said))


def _out_of_memory_text(model: LoadedModel, seen: EventFilter) -> str:
    """When, and with how much in the cache, as far as either is known."""
    sentence = {
        (False, False): mark("{device} ran out of memory."),
        (True, False): mark("{device} ran out of memory after {tokens}."),
        (False, True): mark("{device} ran out of memory, with {size} in the cache."),
        (True, True): mark("{device} ran out of memory after {tokens}, with {size} in the cache."),
    }[bool(seen.tokens), bool(seen.cache_bytes)]
    count = len(seen.tokens)
    tokens = trn("{count} token", "{count} tokens", count).format(count=f"{count:,}")
    return tr(sentence).format(device=model.device, tokens=tokens, size=words.size(seen.cache_bytes))
