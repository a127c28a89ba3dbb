"""Detect threads, timers and windows that outlive a test, with the place where each was created."""

import gc
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any
from unittest import mock

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread, QTimer
from PySide6.QtWidgets import QApplication, QWidget

GRACE_SECONDS = 2.0
# tqdm keeps one monitor for the life of the process.
LASTING_THREADS = {"TMonitor"}


def _origin() -> str:
    """The innermost line outside this file and the standard library's threading module."""
    for frame in reversed(traceback.extract_stack()):
        if frame.filename not in (__file__, threading.__file__):
            return f"{frame.filename}:{frame.lineno} in {frame.name}"
    return "an unknown place"


class LeakWatch:
    """Records every thread and timer started while it is active; `leaks` returns those that are left."""

    def __init__(self) -> None:
        self._started: list[tuple[weakref.ref[Any], str]] = []
        self._stack = ExitStack()
        self._windows_before: list[QWidget] = []

    def __enter__(self) -> "LeakWatch":
        self._windows_before = QApplication.topLevelWidgets()
        for owner in (threading.Thread, QThread, QTimer):
            self._stack.enter_context(mock.patch.object(owner, "start", self._record_starts(owner.start)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _record_starts(self, start: Callable[..., None]) -> Callable[..., None]:
        def noted(starting: Any, *args: Any) -> None:
            self._started.append((weakref.ref(starting), _origin()))
            # A signal connected to start() may bring a bool of its own, which Qt would have dropped.
            start(starting, *(arg for arg in args if not isinstance(arg, bool)))

        return noted

    def leaks(self) -> list[str]:
        """One line for each thing left; waits a little for threads that are just ending."""
        deadline = time.monotonic() + GRACE_SECONDS
        found = self._leftover_objects()
        while found and time.monotonic() < deadline:
            _collect_garbage()
            found = self._leftover_objects()
        return found

    def _leftover_objects(self) -> list[str]:
        return [*self._started_left(), *self._windows_left()]

    def _started_left(self) -> Iterator[str]:
        for reference, origin in self._started:
            thing = reference()
            if thing is not None and _is_alive(thing) and not self._serves_another(thing):
                yield f"- {_describe(thing)}, started at {origin}"

    def _windows_left(self) -> Iterator[str]:
        for window in QApplication.topLevelWidgets():
            if (
                window not in self._windows_before
                and shiboken6.isValid(window)
                and not self._belongs_to_an_earlier_window(window)
            ):
                yield f"- {_describe(window)}, a top-level widget that was never closed and deleted"

    def _serves_another(self, thing: Any) -> bool:
        """Return whether the thread belongs to a window that existed before: it starts with its first request."""
        owner: QObject | None = thing if isinstance(thing, QThread) else None
        while owner is not None and owner not in self._windows_before:
            owner = owner.parent()
        return owner is not None

    def _belongs_to_an_earlier_window(self, window: QWidget) -> bool:
        """It belongs to a window that was there before, as the list of a combo box does."""
        owner = window.parentWidget()
        return owner is not None and owner.window() in self._windows_before


def _is_alive(thing: Any) -> bool:
    if isinstance(thing, threading.Thread):
        return thing.is_alive() and thing.name not in LASTING_THREADS
    if not shiboken6.isValid(thing):
        return False
    return bool(thing.isRunning() if isinstance(thing, QThread) else thing.isActive())


def _describe(thing: Any) -> str:
    if isinstance(thing, QWidget):
        return f"{type(thing).__name__} {thing.objectName() or thing.windowTitle() or '(no name)'}"
    name = thing.objectName() if isinstance(thing, QObject) else thing.name
    return f"{type(thing).__name__} {name or '(no name)'}"


def _collect_garbage() -> None:
    """Run pending deletions, and free what only reference cycles still hold."""
    gc.collect()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()
