"""Lets Ctrl+C stop a command in an orderly way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupt_sets(cancel: threading.Event) -> Iterator[None]:
    """Let the first Ctrl+C set the event, which stops the work after the current token; the second one ends the
    process.
    """

    def stop(_signal: int, _frame: Any) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
