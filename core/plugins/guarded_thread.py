"""Run a plug-in's code in a thread of its own, so that code that never returns cannot block the program."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

from decodescope.core.errors import DecodescopeError, PluginError, UnforeseenError
from decodescope.core.system.plugin_code import (
    PluginLocation,
    attribute_error,
    describe,
    locate_in_stack,
    make_plugin_error,
)
from decodescope.resources.language import tr

T = TypeVar("T")

CALL_SECONDS = 20.0
"""Seconds that code of a plug-in may run without an event of the run; forward passes of the model do not count."""
IMPORT_SECONDS = 60.0
STOP_SECONDS = 3.0
"""Seconds until code of a plug-in is interrupted after the user stopped the run."""
_POLL_SECONDS = 0.1
_INTERRUPT_SECONDS = 1.0
"""Seconds for interrupted code to end before its thread is abandoned."""
_FORWARD = str(Path(__file__).resolve().parents[1] / "decoding" / "forward") + os.sep


class PluginInterrupt(BaseException):
    """Raised inside code of a plug-in that does not return."""


class _Job:
    """One call and its result."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self.done = threading.Event()
        self.result: object = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error
        self.done.set()


class _IteratorEnd:
    """Marks the end of an iterator."""


_END = _IteratorEnd()


class _CodeTime:
    """The time that a call has spent in code of a plug-in, and the time since the user stopped the run, in seconds."""

    def __init__(self) -> None:
        self.inside = self.stopped = 0.0
        self.last = time.monotonic()


class GuardedThread:
    """Runs calls one after another in a daemon thread, and interrupts one that does not return.

    `limit`: seconds that a call may spend in code of a plug-in, by default `CALL_SECONDS`. `cancel`: event with which
    the user stops the run. `is_computing` returns whether code of a plug-in waits for the model.
    """

    def __init__(
        self, limit: float | None = None, cancel: threading.Event | None = None,
        is_computing: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._limit, self._cancel = CALL_SECONDS if limit is None else limit, cancel
        self._is_computing = is_computing
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name="plugin", daemon=True)
        self._thread.start()
        self.is_stuck = False
        """Whether a call could not be interrupted; the thread then takes no more calls."""
        self.failure: PluginError | None = None
        """Why a call was interrupted. The call may still have returned a result."""

    def call(self, function: Callable[[], T]) -> T:
        """Call `function` in the thread and return its result. Raises PluginError for code that does not return or
        that raises an exception other than a DecodescopeError or an Exception of the program's own.
        """
        job, spent = self._start(function), _CodeTime()
        while not job.done.wait(_POLL_SECONDS) and self.failure is None:
            self._check(job, spent)
        return cast("T", self._result_of(job))

    def iterate(self, function: Callable[[Callable[[T], None]], object]) -> Iterator[T]:
        """Call `function` in the thread with a callback, and yield what the callback receives while the call goes on.
        Raises like `call`, after everything that was received.
        """
        items: SimpleQueue[T | _IteratorEnd] = SimpleQueue()

        def produce() -> None:
            try:
                function(items.put)
            finally:
                items.put(_END)

        job, spent = self._start(produce), _CodeTime()
        while True:
            try:
                item = items.get(timeout=_POLL_SECONDS)
            except Empty:
                if job.done.is_set():  # it was interrupted before it could report its end
                    break
                if self.failure is None:
                    self._check(job, spent)
                continue
            if isinstance(item, _IteratorEnd):
                break
            spent = _CodeTime()
            yield item
        job.done.wait()
        self._result_of(job)

    def _start(self, function: Callable[[], object]) -> _Job:
        job = _Job(function)
        self._jobs.put(job)
        return job

    def _result_of(self, job: _Job) -> object:
        """Return the result of a call that has ended. Raises like `call`."""
        if job.error is None:
            return job.result
        if self.failure is not None:
            raise self.failure from job.error
        if isinstance(job.error, Exception) and not isinstance(job.error, StopIteration):
            raise job.error
        raise attribute_error(job.error) or UnforeseenError(describe(job.error)) from job.error

    def close(self) -> None:
        """End the thread after its calls."""
        self._jobs.put(None)
        if not self.is_stuck:
            self._thread.join(_INTERRUPT_SECONDS)

    def _check(self, job: _Job, spent: _CodeTime) -> None:
        """Interrupt a call whose time is over. Raises PluginError if that does not end it."""
        seconds = time.monotonic() - spent.last
        spent.last += seconds
        frame = sys._current_frames().get(self._thread.ident or 0)
        here = locate_in_stack(frame, _FORWARD)
        if self._is_computing():
            return
        if self._cancel is not None and self._cancel.is_set():
            spent.stopped += seconds
            if spent.stopped > STOP_SECONDS and (blamed := locate_in_stack(frame, os.devnull)) is not None:
                self._interrupt(job, blamed, tr("it did not stop when the run was stopped"))
        if here is not None:
            spent.inside += seconds
            if spent.inside > self._limit and self.failure is None:
                problem = tr("it did not return within {seconds:.0f} seconds").format(seconds=self._limit)
                self._interrupt(job, here, problem)

    def _interrupt(self, job: _Job, location: PluginLocation, problem: str) -> None:
        """Raise PluginInterrupt in the thread, and set `failure`. Raises PluginError if the call does not end."""
        self.failure = make_plugin_error(location, problem)
        end = time.monotonic() + _INTERRUPT_SECONDS
        while not job.done.is_set() and time.monotonic() < end:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(PluginInterrupt)
            )
            job.done.wait(_POLL_SECONDS)
        if not job.done.is_set():
            self.is_stuck = True
            raise self.failure


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while True:
        try:
            if (job := jobs.get()) is None:
                return
            job.run()
            del job  # else its result would live until the next call
        except PluginInterrupt:  # it arrived after the call had returned
            continue


def call_guarded(function: Callable[[], T], limit: float | None = None) -> T:
    """Call `function` in a thread of its own. Raises like `GuardedThread.call`."""
    thread = GuardedThread(limit)
    try:
        return thread.call(function)
    finally:
        thread.close()


_MAX_ITEMS_AFTER_FAILURE = 64
"""Items that an interrupted iterator may still yield: the rest of the text."""


def iterate_guarded(make_iterator: Callable[[], Iterator[T]], cancel: threading.Event | None = None) -> Iterator[T]:
    """Iterate over `make_iterator()` in a thread of its own. Raises like `GuardedThread.call`; what the iterator has
    yielded before remains valid.
    """
    thread = GuardedThread(None, cancel)
    iterator = make_iterator()
    remaining = _MAX_ITEMS_AFTER_FAILURE
    try:
        while remaining:
            item = thread.call(lambda: next(iterator, _END))
            if isinstance(item, _IteratorEnd):
                break
            yield item
            remaining -= thread.failure is not None
        if thread.failure is not None:
            raise thread.failure
    finally:
        if isinstance(iterator, Generator) and not thread.is_stuck:
            with suppress(DecodescopeError, PluginError):
                thread.call(iterator.close)
        thread.close()
