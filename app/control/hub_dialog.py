"""The dialog of the hub's models: what it lists and says, and what its buttons do."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.model_choice import ModelChoice
from app.panels.download import download_wording
from app.panels.download import model_page as actions
from app.panels.download.download_dialog import DownloadDialog
from app.panels.download.model_rows import HubModelRow
from app.session.downloads import Downloads
from app.state.hub_models import DownloadStatus
from app.widgets.accessibility.announcements import announce
from core import catalog
from resources.language import sentences, tr, trn

_MOODS = {"failed": "danger", "paused": "warning", "whole": "finished"}
_ENDS = ("whole", "paused", "failed")
"""Standings that are read out when a model comes to them."""


class HubDialog(QObject):
    """One opening of the dialog; goes with it."""

    def __init__(self, window: QWidget, downloads: Downloads, model: ModelChoice) -> None:
        self.dialog = DownloadDialog(window)
        super().__init__(self.dialog)
        self._downloads, self._model = downloads, model
        self._last: dict[str, str] = {}
        self._hub, self._standings = downloads.hub, downloads.standings
        self.dialog.searchWanted.connect(self._hub.search)
        self.dialog.list.picked.connect(self._show_page)
        self.dialog.page.actionWanted.connect(self._act)
        self.dialog.page.pickle.toggled.connect(self._show_page)
        for told in (self._hub, self._standings):
            told.listed.connect(self._show_rows)
        for changed in (self._hub.judged, self._standings.changed):
            changed.connect(self._on_changed)
        if self._hub.query:
            self.dialog.field.setText(self._hub.query)
        self._show_rows()
        downloads.look_at_disk()

    @Slot()
    def _show_rows(self) -> None:
        known, found = self._standings.kept, self._hub.found
        busy = [name for name in known if self._standings.of(name).status != "whole"]
        names = [*busy, *(name for name in found if name not in busy)]
        if self._hub.query is None:
            names += [name for name in known if name not in names]
        self.dialog.show_rows([self._row(name) for name in names], self._note(len(found)))
        self._show_page()

    def _note(self, count: int) -> str:
        hub = self._hub
        if hub.trouble is not None:
            return sentences(hub.trouble.cause, hub.trouble.remedy)
        if hub.query is None:
            return tr("Models of the hub that are on this disk.") if self._standings.kept else ""
        if hub.is_searching and not count:
            return tr("Searching…")
        if not count:
            return tr("The hub has no model that writes text by that name.")
        return trn("{n} model of the hub that writes text", "{n} models of the hub that write text", count).format(
            n=count
        )

    def _row(self, name: str) -> HubModelRow:
        model, standing = self._hub.found.get(name), self._standings.of(name)
        facts = download_wording.short_facts(model) if model is not None else ""
        told = download_wording.how(standing)
        if told:
            share = standing.done / standing.total if standing.total and standing.status != "whole" else None
            return HubModelRow(name, facts, told, _MOODS.get(standing.status, "accent"), share)
        return HubModelRow(
            name, facts, download_wording.short_verdict(model) if model is not None else "", _mood(model)
        )

    @Slot()
    def _show_page(self) -> None:
        name = self.dialog.list.name
        if name:
            self.dialog.page.show_model(name, self._hub.found.get(name), self._standings.of(name))

    @Slot(str)
    def _on_changed(self, name: str) -> None:
        self.dialog.list.show_row(self._row(name))
        if name == self.dialog.list.name:
            self._show_page()
        self._tell(name, self._standings.of(name))

    def _tell(self, name: str, standing: DownloadStatus) -> None:
        """Read out that something has ended: its progress would never end."""
        if self._last.get(name) != standing.status and standing.status in _ENDS and name in self._last:
            announce(self.dialog, f"{name}: {download_wording.how(standing)}")
        self._last[name] = standing.status

    @Slot(str)
    def _act(self, action: str) -> None:
        name, downloads = self.dialog.list.name, self._downloads
        if action in (actions.FETCH, actions.RESUME, actions.MEND):
            downloads.fetch(name, self.dialog.page.allows_pickle)
        elif action == actions.PAUSE:
            downloads.stop(name)
        elif action == actions.DISCARD:
            downloads.discard(name)
        elif action == actions.VERIFY:
            downloads.verify(name)
        elif action == actions.SURELY:
            downloads.delete(name)
        elif action == actions.USE:
            self._model.use_hub(name)
            self.dialog.close()


def _mood(model: catalog.HubModel | None) -> str:
    if model is None or not model.judged:
        return "muted"
    return "finished" if model.fits or model.fits_as else "warning"
