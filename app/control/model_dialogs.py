"""Hub dialog controller: lists models and downloads and handles the buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.model_choice import ModelChoice
from app.panels.download import model_page
from app.panels.download import model_page as actions
from app.panels.download.download_dialog import DownloadDialog, HubModelRow
from app.panels.engine_dialog import EngineDialog, EngineInput
from app.session.background_tasks import BackgroundTask, TaskManager, error_report
from app.session.downloads import Downloads
from app.state.worker_messages import DownloadStatus, ErrorReport
from app.storage.settings import ModelsSection
from app.widgets.accessibility.accessible_widget import announce
from core import catalog, remote, words
from core.errors import AddressError
from resources.language import join_sentences, tr, trn

if TYPE_CHECKING:
    from core.remote import EngineKind

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
        self._hub, self._statuses = downloads.hub, downloads.statuses
        self.dialog.searchRequested.connect(self._hub.search)
        self.dialog.list.picked.connect(self._show_page)
        self.dialog.page.actionRequested.connect(self._run_action)
        self.dialog.page.pickle.toggled.connect(self._show_page)
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
        self.dialog.show_rows([self._row(name) for name in names], self._list_note(len(results)))
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

    def _row(self, name: str) -> HubModelRow:
        model, status = self._hub.found.get(name), self._statuses.get(name)
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
            self.dialog.page.show_model(name, self._hub.found.get(name), self._statuses.get(name))

    @Slot(str)
    def _on_changed(self, name: str) -> None:
        self.dialog.list.show_row(self._row(name))
        if name == self.dialog.list.name:
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
        name, downloads = self.dialog.list.name, self._downloads
        if action in (actions.FETCH, actions.RESUME, actions.REPAIR):
            downloads.fetch(name, self.dialog.page.allows_pickle)
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


_PROBE, _SAVE_KEY = "look", "keep"


class EngineConnection(QObject):
    """Controls one engine dialog; deleted with it."""

    def __init__(self, window: QWidget, model: ModelChoice, settings: ModelsSection) -> None:
        self.dialog = EngineDialog(_keyring_unavailable_reason(), window)
        super().__init__(self.dialog)
        self._model, self._settings = model, settings
        self._tasks = TaskManager(self)
        self._task: BackgroundTask | None = None
        self.dialog.edited.connect(self._on_edited)
        self.dialog.modelsRequested.connect(self._probe)
        self.dialog.connectRequested.connect(self._connect)
        self.dialog.forgetRequested.connect(self._forget_engine)
        self.dialog.destroyed.connect(self._tasks.stop_all)
        self._fill_in_address()

    def _fill_in_address(self) -> None:
        """Fill in the selected engine, or the one added last."""
        known = self._model.name if remote.is_address(self._model.name) else next(reversed(self._settings.engines), "")
        if known:
            self.dialog.address.setText(known)
            self.dialog.allow_plain_box.setChecked(known in self._settings.allow_plain)

    @Slot(str)
    def _on_edited(self, text: str) -> None:
        if self._task is not None:
            self._task.stop_event.set()
            self._task = None
        address = _parsed(text)
        self.dialog.set_plain_http_visible(address is not None and address.scheme == "http" and not address.is_here)
        self.dialog.set_forget_visible(text in self._settings.engines)

    @Slot(object)
    def _probe(self, engine_input: EngineInput) -> None:
        """Probe the address in the background."""
        try:
            address = remote.parse(engine_input.address, engine_input.allows_plain_http)
        except AddressError as error:
            self.dialog.show_status(join_sentences(error.cause, error.remedy), "danger")
            return
        if engine_input.key:
            remote.keep_key(address, engine_input.key)

        def work(errand: BackgroundTask) -> None:
            try:
                found = remote.probe(address, errand.stop_event)
            except Exception as error:
                errand.post(self._on_error, errand, error_report(error))
            else:
                names = [(served.name, served.context) for served in found.models]
                errand.post(self._on_models_found, errand, found.kind, names, address.model)

        self.dialog.show_status(tr("Connecting…"))
        self._task = self._tasks.start(_PROBE, work)

    def _on_models_found(
        self, task: BackgroundTask, kind: EngineKind, names: list[tuple[str, int | None]], selected: str
    ) -> None:
        if task is not self._task:
            return
        if selected and selected not in dict(names):
            names = [*names, (selected, None)]
        listed = [(name, words.count(context, "token") if context else "") for name, context in names]
        self.dialog.show_models(listed, selected)
        count = trn(
            "{engine} responds and offers {count} model.", "{engine} responds and offers {count} models.", len(names)
        )
        self.dialog.show_status(
            join_sentences(count.format(engine=kind.title, count=len(names)), _token_data_text(kind)), "finished"
        )
        self.dialog.models.setFocus()

    def _on_error(self, task: BackgroundTask, error: ErrorReport) -> None:
        if task is self._task:
            self.dialog.show_status(join_sentences(error.cause, error.remedy), "danger")

    @Slot(object, str)
    def _connect(self, engine_input: EngineInput, name: str) -> None:
        parsed = remote.parse(engine_input.address, engine_input.allows_plain_http)
        address = f"{parsed.base}#{name}"
        if engine_input.key:
            remote.keep_key(parsed, engine_input.key)
        if engine_input.allows_plain_http and address not in self._settings.allow_plain:
            self._settings.allow_plain.append(address)
        self._model.add_engine(address)
        if engine_input.key and engine_input.keeps_key:
            self._save_key(parsed, engine_input.key)
        else:
            self.dialog.close()

    def _save_key(self, address: remote.Address, key: str) -> None:
        """Save the key in the system keyring, in the background: a locked keyring prompts for its password."""

        def work(errand: BackgroundTask) -> None:
            errand.post(self._on_key_saved, remote.keep_key(address, key, lasting=True))

        self.dialog.show_status(tr("Saving the key in the system keyring…"))
        self._tasks.start(_SAVE_KEY, work)

    def _on_key_saved(self, is_saved: bool) -> None:
        if is_saved:
            self.dialog.close()
        else:
            message = tr(
                "The engine is connected, but the key could not be saved: the system keyring may be "
                "locked. The key is kept until the program ends."
            )
            self.dialog.show_status(message, "danger")

    @Slot(object)
    def _forget_engine(self, engine_input: EngineInput) -> None:
        """Remove the engine's address, its permission and its key."""
        for addresses in (self._settings.engines, self._settings.allow_plain):
            if engine_input.address in addresses:
                addresses.remove(engine_input.address)
        remote.forget_key(remote.parse(engine_input.address, allow_plain=True))
        self._model.remove(engine_input.address)
        self.dialog.address.clear()


def _parsed(text: str) -> remote.Address | None:
    try:
        return remote.parse(text, allow_plain=True)
    except AddressError:
        return None


def _token_data_text(kind: EngineKind) -> str:
    """Return a sentence on the token data that this engine provides."""
    if not kind.alternatives:
        return tr("It returns text only, without probabilities.")
    return trn(
        "It returns the likeliest token of each step.",
        "It returns up to {count} likely tokens per step.",
        kind.alternatives,
    ).format(count=kind.alternatives)


def _keyring_unavailable_reason() -> str:
    if remote.has_keyring():
        return ""
    if remote.has_keyring_package():
        return tr("No system keyring is available: a key is kept only until the program ends.")
    return tr("Without the keyring package ({command}), a key is kept only until the program ends.").format(
        command="pip install keyring"
    )
