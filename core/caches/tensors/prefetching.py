"""The thread that brings the layers of one cache into memory while others are computed with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Submitter(Protocol):
    """What work can be given to: a `Prefetcher`, or an executor."""

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Have `work` done on another thread."""


class Prefetcher:
    """One thread, which begins with the first work and ends with `stop`; the next work begins another.

    A cache that is kept for later runs rests: hundreds of them may be kept, and each would hold a thread.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Have `work` done on the thread."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="cache-prefetch")
            return self._pool.submit(work, *arguments)

    def stop(self) -> None:
        """End the thread once it has done what it was given."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def stop_without_waiting(self) -> None:
        """End the thread without waiting for it: its cache is gone.

        Garbage is looked for anywhere, also inside a thread that is just beginning: who waited there for the pool's
        thread to end would wait for a lock that it holds itself. For the same reason this takes no lock.
        """
        self._pool = self._pool or ThreadPoolExecutor(1)  # it stands for one that takes no work any more
        self._pool.shutdown(wait=False, cancel_futures=True)
