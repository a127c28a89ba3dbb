"""The figures of a run: its clock, what it has written, what its cache took at most."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch

from core.caches.base import CacheBackend
from core.decoding.forward.forward_pass import Forward
from core.device_memory import PeakMemory
from core.events import CacheMeasured, Metrics

_MEASURE_INTERVAL = 16
"""Steps from one measurement of the cache to the next."""


def is_cache_measured(step: int) -> bool:
    """Whether the cache is measured, and tidied where drafts leave gaps, after this step."""
    return step % _MEASURE_INTERVAL == 0


@dataclass(frozen=True, slots=True)
class DraftingCounters:
    """What speculation did in a run: tokens, and seconds; None without drafts."""

    accepted: int = 0
    examined: int = 0
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None


@dataclass(slots=True)
class RunCounters:
    """A stopwatch and counters; `sequences`: sequences whose first tokens come with the first pass."""

    device: torch.device
    prompt_tokens: int
    sequences: int
    reused_tokens: int = 0
    """Tokens of the prompt that an earlier run had read."""
    drafting: DraftingCounters = field(default_factory=DraftingCounters)
    _started: float = field(default_factory=time.perf_counter, init=False)
    _last_token_time: float = field(default_factory=time.perf_counter, init=False)
    _first_token_time: float | None = field(default=None, init=False)
    _prefill_seconds: float = field(default=0.0, init=False)
    _new_tokens: int = field(default=0, init=False)
    _peak_bytes: int = field(default=0, init=False)
    _memory: PeakMemory = field(init=False)

    def __post_init__(self) -> None:
        self._memory = PeakMemory(self.device)

    def finish_prefill(self, started: float) -> float:
        """The prompt was read, from `started` until now; the seconds it took."""
        self._last_token_time = time.perf_counter()
        self._prefill_seconds = self._last_token_time - started
        return self._prefill_seconds

    def count_token(self) -> float:
        """One more; seconds since the one before it."""
        now = time.perf_counter()
        seconds, self._last_token_time = now - self._last_token_time, now
        self._first_token_time = self._first_token_time or now
        self._new_tokens += 1
        return seconds

    def restart_clock(self) -> None:
        """The next token's time begins now."""
        self._last_token_time = time.perf_counter()

    def set_length(self, tokens: int) -> None:
        """Beams: the text is this long now; figures on speed speak of one hypothesis, the best in the end."""
        self._first_token_time = self._first_token_time or time.perf_counter()
        self._new_tokens = tokens

    def measure(self, backend: CacheBackend, forward: Forward, step: int) -> CacheMeasured:
        """Bytes of the cache now."""
        now = backend.measure(forward.cache)
        self._peak_bytes = max(self._peak_bytes, now.bytes)
        return CacheMeasured(step, now.tokens, now.bytes, self._peak_bytes, now.parts, now.layers, now.held, now.error)

    def metrics(self, backend: CacheBackend, forward: Forward) -> Metrics:
        """Everything, so far."""
        drafting, passes, written = self.drafting, forward.passes, self._new_tokens
        decoding = self._last_token_time - self._first_token_time if self._first_token_time else 0.0
        later, computed = written - self.sequences, self.prompt_tokens - self.reused_tokens
        return Metrics(
            prompt_tokens=self.prompt_tokens,
            new_tokens=written,
            seconds=time.perf_counter() - self._started,
            time_to_first_token=self._first_token_time - self._started if self._first_token_time else None,
            prefill_tokens_per_second=computed / self._prefill_seconds if self._prefill_seconds else None,
            decode_tokens_per_second=later / decoding if later > 0 and decoding > 0 else None,
            target_passes=passes,
            tokens_per_target_pass=written / passes if passes and written else None,
            acceptance_rate=drafting.accepted / drafting.examined if drafting.examined else None,
            draft_seconds=drafting.draft_seconds,
            verify_seconds=drafting.verify_seconds,
            overhead_seconds=drafting.overhead_seconds,
            predicted_speedup=drafting.predicted_speedup,
            cache_bytes=backend.measure(forward.cache).bytes,
            cache_peak_bytes=self._peak_bytes,
            peak_memory_bytes=self._memory.read(),
        )
