"""Controls the dialog that connects to an engine on another machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.panels.engine_dialog import EngineDialog, EngineInput
from decodescope.app.session.background_tasks import BackgroundTask, TaskManager, error_report
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.storage.settings import ModelsSection
from decodescope.core import remote, words
from decodescope.core.errors import AddressError
from decodescope.resources.language import join_sentences, tr, trn

if TYPE_CHECKING:
    from decodescope.core.remote import EngineKind

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

        def work(task: BackgroundTask) -> None:
            try:
                found = remote.probe(address, task.stop_event)
            except Exception as error:
                task.post(self._on_error, task, error_report(error))
            else:
                names = [(served.name, served.context) for served in found.models]
                task.post(self._on_models_found, task, found.kind, names, address.model)

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
        address = str(replace(parsed, model=name))
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

        def work(task: BackgroundTask) -> None:
            task.post(self._on_key_saved, remote.keep_key(address, key, lasting=True))

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
