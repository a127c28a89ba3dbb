"""What the hub's cache holds, looked up beside the window: the library that knows takes long to import."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from core import ModelEntry, catalog

_POLL_MS = 40


class HubScan(QObject):
    """`found(list of ModelEntry)` once, soon after `start`, when there is anything in the cache."""

    found = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._entries: list[ModelEntry] | None = None
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self._poll)

    def start(self) -> None:
        """Begin. A thread that outlives the window touches nothing of it: the result is fetched, not sent."""
        if catalog.hub_has_models():
            threading.Thread(target=self._scan, name="hub-scan", daemon=True).start()
            self._timer.start()

    def _scan(self) -> None:
        entries: list[ModelEntry] = []
        try:
            entries = catalog.hub_cached()
        finally:  # whatever happens here, the timer that waits for an answer ends
            self._entries = entries

    @Slot()
    def _poll(self) -> None:
        if self._entries is not None:
            self._timer.stop()
            self.found.emit(self._entries)
