"""Models of the hub, on the main thread: searched for, fetched, checked and deleted beside the window. It outlives the
dialog that shows it, and a change of language."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.errand import Errand
from app.state.hub_models import Standing
from app.state.requests import ErrorReport, report
from core import catalog
from core.errors import DownloadStoppedError

LOOK_MS = 80
LONGEST_WAIT = 2.0
"""Seconds that the window's end waits for each errand; what a download has fetched by then is kept."""
_SEARCH, _SHELF = "?search", "?shelf"
"""Names of errands that no model can have."""


class Downloads(QObject):
    """`changed(name)`: that model stands otherwise; `listed`: others are found or on the disk; `arrived(ModelEntry)`
    and `deleted(name)`: what can be chosen has changed; `ended(name, ErrorReport or None)`: a download is over."""

    changed = Signal(str)
    listed = Signal()
    arrived = Signal(object)
    deleted = Signal(str)
    ended = Signal(str, object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.query: str | None = None
        """What was searched for last; None before the first search."""
        self.found: dict[str, catalog.HubModel] = {}
        """By name, in the order of the hub."""
        self.trouble: ErrorReport | None = None
        """Why nothing was found."""
        self._known: dict[str, Standing] = {}
        self._errands: dict[str, Errand] = {}
        self._after: dict[str, Callable[[str], None]] = {}
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    @property
    def is_searching(self) -> bool:
        """Whether a search is under way."""
        return _SEARCH in self._errands

    @property
    def kept(self) -> list[str]:
        """Models that are on the disk, whole or not, or on their way."""
        return [name for name, standing in self._known.items() if standing.status != "none"]

    def standing(self, name: str) -> Standing:
        """How that model stands."""
        return self._known.get(name, Standing())

    def look_at_disk(self) -> None:
        """Find out what is there, whole or not; `listed` follows."""

        def work(errand: Errand) -> None:
            whole = [(entry.name, entry.bytes) for entry in catalog.hub_cached() if entry.problem is None]
            errand.tell(self._on_disk, whole, catalog.unfinished())

        self._send(_SHELF, work)

    def search(self, text: str) -> None:
        """Ask the hub; what it finds is listed at once, and judged one after the other."""
        self.query, self.trouble, self.found = text, None, {}
        if _SEARCH in self._errands:
            self._errands[_SEARCH].stop.set()

        def work(errand: Errand) -> None:
            try:
                models = catalog.find(text)
                errand.tell(self._on_found, errand, models)
                for model in models:
                    if not errand.stop.is_set():
                        errand.tell(self._on_judged, errand, catalog.judge(model))
            except Exception as error:
                errand.tell(self._on_trouble, errand, _report(error))

        self._send(_SEARCH, work)
        self.listed.emit()

    def fetch(self, name: str, allow_pickle: bool = False) -> None:
        """Download a model, or go on with it; files that a check found damaged are fetched again."""
        standing = self.standing(name)
        if standing.is_busy:
            return
        anew = standing.damaged or ()

        def work(errand: Errand) -> None:
            catalog.download(
                name,
                lambda now: errand.tell(self._on_progress, name, now),
                stop=errand.stop,
                allow_pickle=allow_pickle,
                anew=anew,
            )
            errand.tell(self._on_whole, name, catalog.hub_entry(name))

        self._guarded(name, work)
        self._stand(name, replace(standing, status="fetching", error=None, damaged=None, progress=None))

    def verify(self, name: str) -> None:
        """Read all of it and hold it against its digests."""
        standing = self.standing(name)

        def work(errand: Errand) -> None:
            damaged = catalog.verify(name, lambda now: errand.tell(self._on_progress, name, now), stop=errand.stop)
            errand.tell(self._on_checked, name, damaged)

        self._guarded(name, work)
        self._stand(name, replace(standing, status="checking", error=None, damaged=None))

    def stop(self, name: str) -> None:
        """Pause what is done for that model; a check ends without a result."""
        if name in self._errands:
            self._errands[name].stop.set()
            if self.standing(name).status == "fetching":
                self._stand(name, replace(self.standing(name), status="stopping"))

    def discard(self, name: str) -> None:
        """Stop fetching it, and delete what has come."""
        self._after[name] = self._discard
        if name in self._errands:
            self.stop(name)
        else:
            self._go_on(name)

    def delete(self, name: str) -> None:
        """Delete a whole model from the disk."""

        def work(errand: Errand) -> None:
            catalog.delete(name)
            errand.tell(self._on_deleted, name)

        self._guarded(name, work)

    @Slot()
    def end(self) -> None:
        """Stop everything; what has come is kept, and can be gone on with."""
        for errand in self._errands.values():
            errand.stop.set()
        for errand in self._errands.values():
            errand.end(LONGEST_WAIT)
        self._errands.clear()
        self._timer.stop()

    def _discard(self, name: str) -> None:
        def work(errand: Errand) -> None:
            catalog.discard(name)
            errand.tell(self._stand, name, Standing())
            errand.tell(self.listed.emit)

        self._guarded(name, work)

    def _guarded(self, name: str, work: Callable[[Errand], None]) -> None:
        """An errand for one model, whose every failure is told."""

        def guarded(errand: Errand) -> None:
            try:
                work(errand)
            except DownloadStoppedError:
                errand.tell(self._on_stopped, name)
            except Exception as error:
                errand.tell(self._on_failed, name, _report(error))

        self._send(name, guarded)

    def _send(self, key: str, work: Callable[[Errand], None]) -> None:
        errand = self._errands[key] = Errand(work, f"hub {key}")
        errand.start()
        self._timer.start()

    @Slot()
    def _look(self) -> None:
        for key, errand in list(self._errands.items()):
            if errand.deliver() and self._errands.get(key) is errand:
                del self._errands[key]
                self._go_on(key)
        if not self._errands:
            self._timer.stop()

    def _go_on(self, name: str) -> None:
        """What was to be done once an errand is over."""
        if name == _SEARCH:
            self.listed.emit()
        elif (then := self._after.pop(name, None)) is not None:
            then(name)

    def _stand(self, name: str, standing: Standing) -> None:
        self._known[name] = standing
        self.changed.emit(name)

    def _on_disk(self, whole: list[tuple[str, int]], unfinished: tuple[catalog.Unfinished, ...]) -> None:
        found = {name: Standing("whole", size, size) for name, size in whole}
        found |= {one.name: Standing("paused", one.done, one.total) for one in unfinished}
        for name, standing in found.items():
            kept = self.standing(name)
            if not kept.is_busy and (kept.status != standing.status or kept.done != standing.done):
                self._known[name] = replace(standing, error=kept.error if kept.status == "failed" else None)
        self.listed.emit()

    def _on_found(self, errand: Errand, models: tuple[catalog.HubModel, ...]) -> None:
        if self._errands.get(_SEARCH) is errand:
            self.found = {model.name: model for model in models}
            self.listed.emit()

    def _on_judged(self, errand: Errand, model: catalog.HubModel) -> None:
        if self._errands.get(_SEARCH) is errand and model.name in self.found:
            self.found[model.name] = model
            self.changed.emit(model.name)

    def _on_trouble(self, errand: Errand, error: ErrorReport) -> None:
        if self._errands.get(_SEARCH) is errand:
            self.trouble = error
            self.listed.emit()

    def _on_progress(self, name: str, now: catalog.Progress) -> None:
        standing = self.standing(name)
        if standing.is_busy:
            self._stand(name, replace(standing, done=now.done, total=now.total, progress=now))

    def _on_whole(self, name: str, entry: catalog.ModelEntry | None) -> None:
        total = self.standing(name).total
        self._stand(name, Standing("whole", total, total))
        if entry is not None:
            self.arrived.emit(entry)
        self.ended.emit(name, None)

    def _on_checked(self, name: str, damaged: tuple[str, ...]) -> None:
        self._stand(name, replace(self.standing(name), status="whole", progress=None, damaged=damaged))

    def _on_stopped(self, name: str) -> None:
        standing = self.standing(name)
        is_kept = standing.status == "checking"
        self._stand(name, replace(standing, status="whole" if is_kept else "paused", progress=None))

    def _on_failed(self, name: str, error: ErrorReport) -> None:
        standing = self.standing(name)
        is_kept = standing.status in ("checking", "whole")
        self._stand(name, replace(standing, status="whole" if is_kept else "failed", progress=None, error=error))
        if not is_kept:
            self.ended.emit(name, error)

    def _on_deleted(self, name: str) -> None:
        self._stand(name, Standing())
        self.deleted.emit(name)
        self.listed.emit()


def _report(error: Exception) -> ErrorReport:
    return report(error, "".join(traceback.format_exception(error)))
