"""Connecting to an engine on another machine: the dialog in step with what answers there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.control.model_choice import ModelChoice
from app.panels.engine_dialog import EngineDialog, EngineInput
from app.session.background_task import BackgroundTask, report_of
from app.session.task_manager import TaskManager
from app.state.worker_messages import ErrorReport
from app.storage.settings import Models
from core import remote, words
from core.errors import AddressError
from resources.language import sentences, tr, trn

if TYPE_CHECKING:
    from core.remote import Kind

_LOOK, _KEEP = "look", "keep"


class EngineConnection(QObject):
    """One opening of the dialog; goes with it."""

    def __init__(self, window: QWidget, model: ModelChoice, kept: Models) -> None:
        self.dialog = EngineDialog(_why_no_keyring(), window)
        super().__init__(self.dialog)
        self._model, self._kept = model, kept
        self._errands = TaskManager(self)
        self._errand: BackgroundTask | None = None
        self.dialog.edited.connect(self._on_edited)
        self.dialog.lookWanted.connect(self._look)
        self.dialog.connectWanted.connect(self._connect)
        self.dialog.forgetWanted.connect(self._forget)
        self.dialog.destroyed.connect(self._errands.end)
        self._begin()

    def _begin(self) -> None:
        """With the engine that is chosen, or the one that was added last."""
        known = self._model.name if remote.is_address(self._model.name) else next(reversed(self._kept.engines), "")
        if known:
            self.dialog.address.setText(known)
            self.dialog.plain.setChecked(known in self._kept.allow_plain)

    @Slot(str)
    def _on_edited(self, text: str) -> None:
        if self._errand is not None:
            self._errand.stop.set()
            self._errand = None
        address = _parsed(text)
        self.dialog.set_plain_needed(address is not None and address.scheme == "http" and not address.is_here)
        self.dialog.set_known(text in self._kept.engines)

    @Slot(object)
    def _look(self, wanted: EngineInput) -> None:
        """Ask what is there, beside the window."""
        try:
            address = remote.parse(wanted.address, wanted.allows_plain)
        except AddressError as error:
            self.dialog.show_status(sentences(error.cause, error.remedy), "danger")
            return
        if wanted.key:
            remote.keep_key(address, wanted.key)

        def work(errand: BackgroundTask) -> None:
            try:
                found = remote.probe(address, errand.stop)
            except Exception as error:
                errand.tell(self._on_trouble, errand, report_of(error))
            else:
                names = [(served.name, served.context) for served in found.models]
                errand.tell(self._on_found, errand, found.kind, names, address.model)

        self.dialog.show_status(tr("Looking…"))
        self._errand = self._errands.send(_LOOK, work)

    def _on_found(self, errand: BackgroundTask, kind: Kind, names: list[tuple[str, int | None]], picked: str) -> None:
        if errand is not self._errand:
            return
        if picked and picked not in dict(names):
            names = [*names, (picked, None)]
        listed = [(name, words.count(context, "token") if context else "") for name, context in names]
        self.dialog.show_models(listed, picked)
        count = trn("{engine} answers, with {count} model.", "{engine} answers, with {count} models.", len(names))
        self.dialog.show_status(sentences(count.format(engine=kind.title, count=len(names)), _tells(kind)), "finished")
        self.dialog.models.setFocus()

    def _on_trouble(self, errand: BackgroundTask, error: ErrorReport) -> None:
        if errand is self._errand:
            self.dialog.show_status(sentences(error.cause, error.remedy), "danger")

    @Slot(object, str)
    def _connect(self, wanted: EngineInput, name: str) -> None:
        parsed = remote.parse(wanted.address, wanted.allows_plain)
        address = f"{parsed.base}#{name}"
        if wanted.key:
            remote.keep_key(parsed, wanted.key)
        if wanted.allows_plain and address not in self._kept.allow_plain:
            self._kept.allow_plain.append(address)
        self._model.add_engine(address)
        if wanted.key and wanted.keeps_key:
            self._keep(parsed, wanted.key)
        else:
            self.dialog.close()

    def _keep(self, address: remote.Address, key: str) -> None:
        """In the system's keyring, beside the window: a locked one asks for its password."""

        def work(errand: BackgroundTask) -> None:
            errand.tell(self._on_kept, remote.keep_key(address, key, lasting=True))

        self.dialog.show_status(tr("The system's keyring is asked to keep the key…"))
        self._errands.send(_KEEP, work)

    def _on_kept(self, is_kept: bool) -> None:
        if is_kept:
            self.dialog.close()
        else:
            told = tr(
                "The engine is connected, but the system's keyring did not take the key: it may be locked. The key is "
                "known until the program ends."
            )
            self.dialog.show_status(told, "danger")

    @Slot(object)
    def _forget(self, wanted: EngineInput) -> None:
        """Its address, its permission and its key."""
        for kept in (self._kept.engines, self._kept.allow_plain):
            if wanted.address in kept:
                kept.remove(wanted.address)
        remote.forget_key(remote.parse(wanted.address, allow_plain=True))
        self._model.drop(wanted.address)
        self.dialog.address.clear()


def _parsed(text: str) -> remote.Address | None:
    try:
        return remote.parse(text, allow_plain=True)
    except AddressError:
        return None


def _tells(kind: Kind) -> str:
    """What can be seen of its tokens."""
    if not kind.alternatives:
        return tr("It tells text only: no probabilities.")
    return trn(
        "It tells the likeliest token of each step.",
        "It tells up to {count} likely tokens of each step.",
        kind.alternatives,
    ).format(count=kind.alternatives)


def _why_no_keyring() -> str:
    if remote.has_keyring():
        return ""
    if remote.has_keyring_package():
        return tr("This system has no keyring that is open to programs: a key is known until the program ends.")
    return tr("Without the package keyring ({command}) a key is known until the program ends.").format(
        command="pip install keyring"
    )
