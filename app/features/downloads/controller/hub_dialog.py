"""Hub dialog controller: lists models and downloads and handles the buttons."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.features.downloads.panel import model_page
from decodescope.app.features.downloads.panel import model_page as actions
from decodescope.app.features.downloads.panel.download_dialog import DownloadDialog, HubModelRow
from decodescope.app.features.downloads.session import Downloads
from decodescope.app.state.worker_messages import DownloadStatus
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.core import catalog
from decodescope.resources.language import join_sentences, tr, trn

_STATUS_COLOURS = {"failed": "danger", "paused": "warning", "whole": "finished"}
_FINAL_STATUSES = ("whole", "paused", "failed")
"""Statuses that are announced to screen readers when reached."""


class HubDialog(QObject):
    """Controls one hub dialog; deleted with it."""

    def __init__(self, window: QWidget, downloads: Downloads, model: ModelChoice) -> None:
        self.dialog = DownloadDialog(window)
        super().__init__(self.dialog)
        self._downloads, self._model = downloads, model
        self._last_status: dict[str, str] = {}
        self._variants: dict[str, str] = {}
        """The GGUF model chosen in each repository."""
        self._hub, self._statuses = downloads.hub, downloads.statuses
        self.dialog.searchRequested.connect(self._hub.search)
        self.dialog.list.picked.connect(self._show_page)
        self.dialog.page.actionRequested.connect(self._run_action)
        self.dialog.page.pickle.toggled.connect(self._show_page)
        self.dialog.page.variantPicked.connect(self._choose_variant)
        for source in (self._hub, self._statuses):
            source.listed.connect(self._show_rows)
        for changed in (self._hub.judged, self._statuses.changed):
            changed.connect(self._on_changed)
        if self._hub.query:
            self.dialog.field.setText(self._hub.query)
        self._show_rows()
        downloads.scan_disk()

    @Slot()
    def _show_rows(self) -> None:
        known, results = self._statuses.names, self._hub.found
        busy = [name for name in known if self._statuses.get(name).status != "whole"]
        names = [*busy, *(name for name in results if name not in busy)]
        if self._hub.query is None:
            names += [name for name in known if name not in names]
        role = "muted" if self._hub.error is None else "danger"
        self.dialog.show_rows([self._row(name) for name in names], self._list_note(len(results)), role)
        self._show_page()

    def _list_note(self, count: int) -> str:
        hub = self._hub
        if hub.error is not None:
            return join_sentences(hub.error.cause, hub.error.remedy)
        if hub.query is None:
            return tr("Downloaded Hub models on this disk.") if self._statuses.names else ""
        if hub.is_searching and not count:
            return tr("Searching…")
        if not count:
            return tr("The Hub has no text generation model of that name.")
        return trn("{n} text generation model on the Hub", "{n} text generation models on the Hub", count).format(
            n=count
        )

    def _found_model(self, name: str) -> catalog.HubModel | None:
        """Return the found model, with the chosen GGUF model, or with the one in the name."""
        repository, variant = catalog.split_name(name)
        model = self._hub.found.get(repository)
        wanted = variant or self._variants.get(repository, "")
        return model.with_variant(wanted) if model is not None and wanted else model

    def _download_name(self, name: str) -> str:
        """Return the name under which the model is downloaded: of a repository with the chosen GGUF model."""
        model = self._found_model(name)
        return model.download_name if model is not None else name

    def _row(self, name: str) -> HubModelRow:
        model, status = self._found_model(name), self._statuses.get(self._download_name(name))
        facts = model_page.short_facts_text(model) if model is not None else ""
        status_text = model_page.progress_text(status)
        if status_text:
            fraction = status.done / status.total if status.total and status.status != "whole" else None
            return HubModelRow(name, facts, status_text, _STATUS_COLOURS.get(status.status, "accent"), fraction)
        return HubModelRow(
            name, facts, model_page.short_fit_text(model) if model is not None else "", _fit_colour(model)
        )

    @Slot()
    def _show_page(self) -> None:
        name = self.dialog.list.name
        if name:
            self.dialog.page.show_model(name, self._found_model(name), self._statuses.get(self._download_name(name)))

    @Slot(str)
    def _choose_variant(self, key: str) -> None:
        """Choose another GGUF model of the shown repository."""
        self._variants[self.dialog.list.name] = key
        self._on_changed(self.dialog.list.name)

    @Slot(str)
    def _on_changed(self, name: str) -> None:
        repository = catalog.split_name(name)[0]
        for row in {name, repository}:
            self.dialog.list.show_row(self._row(row))
        if self.dialog.list.name in (name, repository):
            self._show_page()
        self._announce_end(name, self._statuses.get(name))

    def _announce_end(self, name: str, status: DownloadStatus) -> None:
        """Announce only the end of a download, not its progress."""
        if (
            self._last_status.get(name) != status.status
            and status.status in _FINAL_STATUSES
            and name in self._last_status
        ):
            announce(self.dialog, f"{name}: {model_page.progress_text(status)}")
        self._last_status[name] = status.status

    @Slot(str)
    def _run_action(self, action: str) -> None:
        name, downloads = self._download_name(self.dialog.list.name), self._downloads
        if action in (actions.FETCH, actions.RESUME, actions.REPAIR):
            downloads.fetch(name, self.dialog.page.allows_pickle)
            if name != self.dialog.list.name:
                self._show_rows()  # the download has a row of its own, so that another file can be chosen meanwhile
        elif action == actions.PAUSE:
            downloads.stop(name)
        elif action == actions.DISCARD:
            downloads.discard(name)
        elif action == actions.VERIFY:
            downloads.verify(name)
        elif action == actions.CONFIRM_DELETE:
            downloads.delete(name)
        elif action == actions.USE:
            self._model.choose_hub_model(name)
            self.dialog.close()


def _fit_colour(model: catalog.HubModel | None) -> str:
    if model is None or not model.judged:
        return "muted"
    return "finished" if model.fits or model.fits_as else "warning"
